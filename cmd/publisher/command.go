package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// run is the command without its process: it returns the exit code.
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
		Short: "Publish agent turns, answer what they ask, and wait for their outcomes",
		Long: "publisher hands agent turns to the workers, can wait for their outcomes, and answers what their tools ask.\n\n" +
			"Exit codes: 0 everything was published and, with --wait, every turn ended with success, or\n" +
			"the answer was accepted; 1 not so; 2 wrong usage or configuration; 130 ended by a second signal.",
	}, cli.ReadBuild().Text("publisher"))
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(publishCommand(env), answerCommand(env), cancelCommand(env), exampleCommand(env), cli.Version(env))
	return root
}
