package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/cmd/publisher/internal/demo"
)

func demoCommand(env cli.Lookup) *cobra.Command {
	var worker, python string
	cmd := cli.Command(&cobra.Command{
		Use:   "demo",
		Short: "Show the promise at work: real workers, really killed",
		Long: "demo starts a NATS server on a free port and two workers on the workflows of examples/01-hello and\n" +
			"02-approval, and shows in a few scenes that a turn runs once and always ends, also one that waits for a person.\n" +
			"It takes about 15 seconds and leaves nothing behind.\n\n" +
			"Exit codes: 0 only if everything that it shows really happened, else 1.",
		Args: cli.NoArguments(""),
	}, env, func(cmd *cobra.Command, _ []string) error {
		path, err := findWorker(worker)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		runtime.LockOSThread() // workers die with the thread that starts them
		return demo.Run(cmd.Context(), demo.Options{Worker: path, Python: python, Out: cmd.OutOrStdout()})
	})
	cmd.Flags().StringVar(&worker, "worker", "", "path of the worker's binary (default: worker beside this binary)")
	cmd.Flags().StringVar(&python, "python", "", "Python interpreter for the tools, 3.9 or newer (default: as a worker finds it)")
	return cmd
}

// findWorker returns the path of the worker's binary: the one named, or the one beside this
// binary.
func findWorker(named string) (string, error) {
	const mend = "build it with make build, or name it with --worker PATH"
	path := named
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the worker: %w: %s", err, mend)
		}
		path = filepath.Join(filepath.Dir(self), "worker"+filepath.Ext(self))
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = exec.LookPath(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the worker: %w: %s", err, mend)
	}
	return path, nil
}
