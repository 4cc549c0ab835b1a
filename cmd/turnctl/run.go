package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

// app is what the commands share.
type app struct {
	env            cli.Lookup
	stdout, stderr io.Writer
	now            func() time.Time
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, env cli.Lookup, stdout, stderr io.Writer) int {
	a := &app{env: env, stdout: stdout, stderr: stderr, now: time.Now}
	root := a.root()
	root.SetOut(stdout)
	root.SetErr(stderr)
	return cli.Execute(ctx, root, args)
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "turnctl",
		Short: "Check, inspect and provision oneturn",
	}, cli.ReadBuild().Text("turnctl"))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.check(), a.show(), a.ls(), a.dead(), a.repair(), a.waits(), a.provision(), a.doctor(), a.tools(), a.secretKey(), cli.Version(a.env))
	return root
}

// command gives c the settings of cfg as flags, and loads them before do runs.
func (a *app) command(c *cobra.Command, cfg any, do func(ctx context.Context, args []string) error) *cobra.Command {
	return cli.Command(c, a.env, func(c *cobra.Command, args []string) error { return do(c.Context(), args) }, cfg)
}
