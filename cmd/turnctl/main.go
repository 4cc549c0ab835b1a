package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/denied"
)

func main() {
	cli.Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// app has what the commands share.
type app struct {
	env            cli.Lookup
	stdin          io.Reader
	terminal       bool // stdin is a terminal
	wide           bool // stdout is none
	stdout, stderr io.Writer
	now            func() time.Time
	denied         *denied.Denials // of the connection, nil without one
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, env cli.Lookup, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: os.Stdin, terminal: isTerminal(os.Stdin), wide: !isTerminalWriter(stdout), stdout: stdout, stderr: cli.Locked(stderr), now: time.Now}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	a.stdout, a.stderr = cli.Terminal(a.stdout), cli.Terminal(a.stderr)
	root := a.root()
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	a.noteFormerName(root, args)
	return cli.Execute(ctx, root, args)
}

func isTerminalWriter(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// isTerminal reports whether a file is a character device other than the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "turnctl",
		Short: "Check, inspect and provision oneturn",
	}, cli.ReadBuild().Text("turnctl"))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.check(), a.tools(), a.call(), a.plan(), a.extract(), a.handoff(), a.show(), a.retry(), a.ls(), a.dead(), a.repair(), a.questions(), a.waits(), a.provision(), a.doctor(), a.natsConfig(), a.secretKey(), cli.Version(a.env))
	return root
}

// command gives c the settings of cfg as flags, and loads them before do runs.
func (a *app) command(c *cobra.Command, cfg any, do func(ctx context.Context, args []string) error) *cobra.Command {
	return cli.Command(c, a.env, func(c *cobra.Command, args []string) error {
		err := do(c.Context(), args)
		if a.denied != nil && !errors.Is(err, cli.ErrReported) {
			err = a.denied.Explain(err)
		}
		return err
	}, cfg)
}

// durationFlag adds a flag whose default is printed without empty units in help.
func durationFlag(c *cobra.Command, d *time.Duration, name string, value time.Duration, usage string) {
	c.Flags().DurationVar(d, name, value, usage)
	c.Flags().Lookup(name).DefValue = durationText(value)
}
