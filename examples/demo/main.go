// Command demo kills real workers while they run tools, and counts the runs.
//
// It starts a NATS server in its own process and two workers on the workflows of
// examples/01-hello and examples/02-approval and on those in workflows, runs the scenarios of scenarios.go,
// questions.go, programs.go and messages.go, and checks what they promise. The evidence is independent of NATS and of the
// workers: each run of a tool adds a line to a ledger file, and a subscriber counts the
// responses (checks.go). demo.go lists and runs the scenarios, setup.go starts and stops all parts, workers.go the worker
// processes, which parent_death_*.go ends if the demo is killed.
//
//	make demo
//	go run ./examples/demo -worker bin/worker
//
// It takes about 20 seconds and removes all it created. The exit code is 0 only if every
// promise was kept, 2 for wrong usage, else 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
)

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.worker, "worker", filepath.Join("bin", "worker"), "path of the worker's binary")
	flag.StringVar(&o.python, "python", "", "Python interpreter for the tools, 3.9 or newer (default: as a worker finds it)")
	flag.Parse()
	path, err := findWorker(o.worker)
	if flag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: see -help", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(2)
	}
	o.worker = path
	runtime.LockOSThread() // the kernel ends the workers when the thread that started them ends
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = runDemo(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// findWorker returns the absolute path of the worker's binary, because the workers run in
// another folder.
func findWorker(named string) (string, error) {
	path, err := filepath.Abs(named)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the worker: %w: build it with make build, or set -worker PATH", err)
	}
	return path, nil
}
