package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/config"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is what the commands share.
type app struct {
	env            func(string) (string, bool)
	stdout, stderr io.Writer
	now            func() time.Time
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	a := &app{env: env, stdout: stdout, stderr: stderr, now: time.Now}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var failed *failedError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &failed):
		fmt.Fprintln(stderr, "turnctl:", err)
		return exitFailed
	default: // the command line, or the settings
		fmt.Fprintln(stderr, "turnctl:", err)
		return exitUsage
	}
}

// root returns the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "turnctl",
		Short:         "Check, inspect and provision oneturn",
		Version:       readBuild().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("turnctl {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return config.FlagError(c.CommandPath(), c.Flags(), err)
	})
	root.AddCommand(a.check(), a.show(), a.ls(), a.dead(), a.repair(), a.provision(), a.doctor(), a.version())
	return root
}

// command gives c the settings of cfg as flags, and loads them before do runs.
func (a *app) command(c *cobra.Command, cfg any, do func(ctx context.Context, args []string) error) *cobra.Command {
	errBind := config.BindFlags(c.Flags(), cfg)
	c.RunE = func(c *cobra.Command, args []string) error {
		if errBind != nil {
			return errBind
		}
		if err := config.Load(c.Flags(), a.env, cfg); err != nil {
			return err
		}
		return failed(do(c.Context(), args))
	}
	return c
}

// errReported says that the output has said already what is wrong.
var errReported = errors.New("faults were found")

// usageError is a mistake in the command line that only the command itself can see.
type usageError struct{ error }

// failedError is an error of the work, not of the command line.
type failedError struct{ error }

// Unwrap returns the cause.
func (e *failedError) Unwrap() error { return e.error }

func failed(err error) error {
	var usage *usageError
	if err == nil || errors.As(err, &usage) {
		return err
	}
	return &failedError{err}
}

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
