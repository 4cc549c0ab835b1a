package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/internal/memory"
)

func main() {
	cli.Quiet()
	if err := makeUndumpable(); err != nil {
		fmt.Fprintln(os.Stderr, "worker: tools may read the memory of this process:", err)
	}
	memory.Pace(os.LookupEnv, memory.ContainerLimit)
	// Turns that run when a second signal ends the process are in the journal: a worker takes them over.
	os.Exit(run(cli.Signals(nil, func() {
		fmt.Fprintln(os.Stderr, "worker: second signal: stopped; running turns are taken over after the ack wait, by other workers "+
			"or by the next one that starts (with the same --store, if the server was embedded)")
	}), os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, env cli.Lookup, stdout, stderr io.Writer) int {
	cmd := command(env)
	cmd.SetOut(cli.Terminal(stdout))
	cmd.SetErr(cli.Terminal(stderr))
	return cli.Execute(ctx, cmd, args)
}

func command(env cli.Lookup) *cobra.Command {
	var cfg config.Worker
	cmd := cli.Root(&cobra.Command{
		Use:   "worker",
		Short: "Run the tools of agent turns, once per turn",
		Long: "worker consumes agent turns from NATS and runs their tools. Without --nats and\n" +
			"--context it embeds a NATS server, so that nothing else is needed.\n\n" +
			"The first SIGINT or SIGTERM drains: running tools may continue for --soft-stop. The second one ends the process immediately.\n" +
			"Exit codes: 0 drained, 1 failed, 2 wrong usage or configuration, 130 ended by a second signal.",
		Example: "  worker --workflows examples/01-hello/workflows\n  worker --workflows workflows --nats nats://127.0.0.1:4222 --http off",
		Args:    cli.NoArguments("--workflows"),
	}, cli.ReadBuild().Text("worker"))
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(cli.Version(env))
	return cli.Command(cmd, env, func(cmd *cobra.Command, _ []string) error {
		return serve(cmd.Context(), &cfg, env, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}, &cfg)
}
