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

type lookup = func(name string) (string, bool)

// run is the command without its process: it returns the exit code.
func run(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) int {
	cmd, err := command(env)
	if err == nil {
		cmd.SetArgs(args)
		cmd.SetOut(stdout)
		cmd.SetErr(stderr)
		err = cmd.ExecuteContext(ctx)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "worker: %v\n", err)
	var wrong usageError
	var settings *config.Error
	if errors.As(err, &wrong) || errors.As(err, &settings) {
		return exitUsage
	}
	return exitFailed
}

func command(env lookup) (*cobra.Command, error) {
	var cfg config.Worker
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the tools that agent turns call for, once per turn",
		Long: "worker consumes agent turns from NATS and runs the tools that they call for. Without --nats and\n" +
			"--context it embeds a NATS server, so that nothing else is needed.\n\n" +
			"The first SIGINT or SIGTERM drains: running tools may go on for --soft-stop. The second one ends at once.\n" +
			"Exit codes: 0 drained, 1 failed, 2 wrong usage or configuration, 130 ended by a second signal.",
		Example:       "  worker --workflows examples/01-hello/workflows\n  worker --workflows workflows --nats nats://127.0.0.1:4222 --http off",
		Args:          usage(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(cmd.Flags(), env, &cfg); err != nil {
				return err
			}
			return serve(cmd.Context(), &cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.Version = buildOf(debug.ReadBuildInfo()).String()
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{config.FlagError(c.CommandPath(), c.Flags(), err)}
	})
	if err := config.BindFlags(cmd.Flags(), &cfg); err != nil {
		return nil, err
	}
	version, err := versionCommand(env)
	if err != nil {
		return nil, err
	}
	cmd.AddCommand(version)
	return cmd, nil
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
	return fmt.Sprintf("oneturn worker %s (commit %s, %s, %s)", b.Version, b.Commit, b.Go, b.Platform)
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
