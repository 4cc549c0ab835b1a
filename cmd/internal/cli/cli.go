// Package cli has what the commands share:
//
//   - cli.go: the root and the subcommands of a command, their settings as flags, exit codes, and errors, which are
//     printed once. Until the work of a command has begun, every error is a mistake in the command line.
//   - arguments.go: checks of arguments. version.go: the command version. signals.go: what signals do.
//   - terminal.go: output that is safe for a terminal. text.go: text that fits the width. output.go: JSON, words for a
//     shell, and writers for several goroutines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // to silence it
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/config"
)

// The exit codes.
const (
	OK     = 0
	Failed = 1   // the work failed
	Usage  = 2   // the command line or the settings are wrong
	Killed = 130 // a second signal ended the process
)

// ErrReported ends a command whose output includes the error already: it exits with [Failed], and nothing more
// is printed.
var ErrReported = errors.New("error already reported")

// Lookup reads the environment as [os.LookupEnv] does.
type Lookup = func(name string) (string, bool)

// Quiet silences the standard logger of Go. The product does not use it, but net/http logs
// unexpected bytes of an endpoint to it, which may be anything.
func Quiet() { log.SetOutput(io.Discard) }

// Root makes c the root of a command: it prints no error by itself, has --version, and suggests a flag for a
// misspelt one.
func Root(c *cobra.Command, version string) *cobra.Command {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.Version = version
	c.SetVersionTemplate("{{.Version}}\n")
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", Width)))
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return config.FlagError(c.CommandPath(), c.Flags(), err)
	})
	return c
}

// Command gives c the settings as flags, and loads them before do runs. Settings are pointers
// to structs as in package config; all of their errors are reported together.
func Command(c *cobra.Command, env Lookup, do func(c *cobra.Command, args []string) error, settings ...any) *cobra.Command {
	var errBind error
	for _, s := range settings {
		errBind = errors.Join(errBind, config.BindFlags(c.Flags(), s))
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		err := errBind
		if err == nil {
			for _, s := range settings {
				err = errors.Join(err, config.Load(c.Flags(), env, s))
			}
		}
		if err != nil {
			return err
		}
		warnUnknownVariables(c.ErrOrStderr(), settings)
		return failed(do(c, args))
	}
	return c
}

// warnUnknownVariables logs the variables of the environment that set nothing.
func warnUnknownVariables(stderr io.Writer, settings []any) {
	for _, s := range settings {
		out, ok := s.(interface {
			Logger(w io.Writer) *slog.Logger
		})
		if !ok {
			continue
		}
		for _, v := range config.UnknownVariables(os.Environ(), settings...) {
			fix := "see docs/configuration.md for the variables"
			if v.Meant != "" {
				fix = "did you mean " + v.Meant + "?"
			}
			out.Logger(stderr).Warn("unknown environment variable: it sets nothing", "variable", v.Name, "fix", fix)
		}
		return
	}
}

// wrapHelp breaks the help of a command and of its subcommands into lines of [Width].
func wrapHelp(c *cobra.Command) {
	c.Long = Paragraphs(c.Long)
	for _, sub := range c.Commands() {
		wrapHelp(sub)
	}
}

// Execute runs a command line without the name of the command. It prints the error, if there
// is one, after the name, and returns the exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	wrapHelp(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return OK
	}
	if errors.Is(err, ErrReported) {
		return Failed
	}
	for _, one := range each(err) {
		prefix := root.Name() + ": " // an error of the package with the name of the command has it too
		fmt.Fprintln(root.ErrOrStderr(), prefix+strings.TrimPrefix(one.Error(), prefix))
	}
	if work := new(failedError); errors.As(err, &work) {
		return Failed
	}
	return Usage
}

// each returns the errors that were joined, in order; the error itself if it was not joined.
func each(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, each(one)...)
	}
	return all
}

// Usagef makes an error for a mistake in the command line that is detected during the work.
func Usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.error }

// failedError is an error of the work.
type failedError struct{ error }

// Unwrap returns the cause.
func (e *failedError) Unwrap() error { return e.error }

// failed marks an error of the work.
func failed(err error) error {
	if usage := new(usageError); err == nil || errors.As(err, &usage) {
		return err
	}
	return &failedError{err}
}
