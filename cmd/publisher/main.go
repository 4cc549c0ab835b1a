package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func main() {
	os.Exit(run(cli.Signals(errors.New("interrupted by a signal"), nil), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, env cli.Lookup, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := command(env)
	cmd.SetIn(stdin)
	cmd.SetOut(cli.Terminal(stdout))
	cmd.SetErr(cli.Terminal(stderr))
	return cli.Execute(ctx, cmd, args)
}

func command(env cli.Lookup) *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "publisher",
		Short: "Publish agent turns and messages, answer their questions, and wait for their outcomes",
		Long: "publisher sends agent turns, and messages of agents and users, to the workers, can wait for their outcomes, and answers the\n" +
			"questions of tools.\n\n" +
			"Exit codes: 0 success; 1 failure; 2 wrong usage or configuration; 130 ended by a second signal.\n" +
			"What succeeds, with and without --wait: publisher publish --help, publisher answer --help.",
	}, cli.ReadBuild().Text("publisher"))
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(publishCommand(env), messageCommand(env), answerCommand(env), cancelCommand(env), exampleCommand(env), cli.Version(env))
	return root
}
