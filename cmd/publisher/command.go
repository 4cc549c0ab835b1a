package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/config"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitKilled = 130
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks the error of a check of cobra's.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// errTold ends the command with a failure that was told already.
var errTold = errors.New("told")

type lookup = func(name string) (string, bool)

// run is the command without its process: it returns the exit code.
func run(ctx context.Context, args []string, env lookup, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd, err := command(env)
	if err == nil {
		cmd.SetArgs(args)
		cmd.SetIn(stdin)
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err = cmd.ExecuteContext(ctx)
	}
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errTold) {
		fmt.Fprintf(stderr, "publisher: %v\n", err)
	}
	var wrong usageError
	var settings *config.Error
	if errors.As(err, &wrong) || errors.As(err, &settings) {
		return exitUsage
	}
	return exitFailed
}

func command(env lookup) (*cobra.Command, error) {
	root := &cobra.Command{
		Use:   "publisher",
		Short: "Publish agent turns and wait for their outcomes",
		Long: "publisher hands agent turns to the workers and can wait for their outcomes.\n\n" +
			"Exit codes: 0 everything was published and, with --wait, every turn ended with success; 1 not so;\n" +
			"2 wrong usage or configuration; 130 ended by a second signal.",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("name a command: publish, cancel, example, demo or version; --help tells more")}
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.Version = buildOf(debug.ReadBuildInfo()).String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{config.FlagError(c.CommandPath(), c.Flags(), err)}
	})
	for _, sub := range []func(lookup) (*cobra.Command, error){publishCommand, cancelCommand, exampleCommand, demoCommand, versionCommand} {
		cmd, err := sub(env)
		if err != nil {
			return nil, err
		}
		root.AddCommand(cmd)
	}
	return root, nil
}

func versionCommand(env lookup) (*cobra.Command, error) {
	var out config.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(cmd.Flags(), env, &out); err != nil {
				return err
			}
			b := buildOf(debug.ReadBuildInfo())
			if out.Format == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(b)
			}
			fmt.Fprintln(cmd.OutOrStdout(), b)
			return nil
		},
	}
	return cmd, config.BindFlags(cmd.Flags(), &out)
}

// build is what a binary was built from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is the build for people.
func (b build) String() string {
	return fmt.Sprintf("oneturn publisher %s (commit %s, %s, %s)", b.Version, b.Commit, b.Go, b.Platform)
}

func buildOf(info *debug.BuildInfo, ok bool) build {
	b := build{Version: "unknown", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	changed := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed {
		b.Commit += " with changes"
	}
	return b
}
