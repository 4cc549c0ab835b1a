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
	memory.PaceConnections(os.LookupEnv, memory.ContainerLimit)
	os.Exit(run(cli.Signals(nil, func() {
		fmt.Fprintln(os.Stderr, "gateway: second signal: stopped; clients connect again, with their cursors")
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
	var cfg config.Gateway
	cmd := cli.Root(&cobra.Command{
		Use:   "gateway",
		Short: "Serve chats to frontends",
		Long: "gateway serves the chats of oneturn to frontends: WebSockets, plain requests and event streams.\n" +
			"It needs a NATS server with the streams of oneturn, and no worker to show what is stored.\n\n" +
			"The first SIGINT or SIGTERM drains: sockets and streams end within --drain. The second one ends the process immediately.\n" +
			"Exit codes: 0 drained, 1 failed, 2 wrong usage or configuration, 130 ended by a second signal.",
		Example: "  gateway --dev\n" +
			"  gateway --nats nats://127.0.0.1:4222 --jwks https://issuer.example/jwks.json --issuer https://issuer.example --audience oneturn",
		Args: cli.NoArguments(""),
	}, cli.ReadBuild().Text("gateway"))
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(cli.Version(env), readiness(env))
	return cli.Command(cmd, env, func(cmd *cobra.Command, _ []string) error {
		return serve(cmd.Context(), &cfg, env, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}, &cfg)
}
