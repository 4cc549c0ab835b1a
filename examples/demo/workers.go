// workers.go starts, kills and measures the worker processes. A worker is ready when it has
// printed its first line; its log goes to a file, whose end is part of every error.

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// workerGroup holds the worker processes.
type workerGroup struct {
	o    options
	dir  string   // of their logs
	args []string // of each
	env  []string // of each

	all []*worker
}

// worker is one worker process.
type worker struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	log   string // file with its standard error
	start struct {
		HTTP string `json:"http"`
	}
	gone bool
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

// startTimeout bounds the start of a worker, most of which is Python's.
const startTimeout = 20 * time.Second

// start starts a worker and waits until it consumes, which is when it prints its first line.
func (c *workerGroup) start(ctx context.Context) (*worker, error) {
	w := &worker{cmd: exec.Command(c.o.worker, c.args...), log: filepath.Join(c.dir, fmt.Sprintf("worker-%d.log", len(c.all)+1))} //nolint:noctx // stop kills it, in every case
	w.cmd.Env, w.cmd.Dir = c.env, c.dir
	killWithParent(w.cmd)
	log, err := os.Create(w.log)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	defer log.Close() // the process has its own copy
	w.cmd.Stderr = log
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w: build it with make build, or set -worker PATH", err)
	}
	w.out = bufio.NewReader(out)
	c.all = append(c.all, w)
	if err := w.ready(ctx); err != nil {
		return nil, fmt.Errorf("start worker %s: %w%s", c.o.worker, err, c.logTail())
	}
	return w, nil
}

// ready reads the first line of a worker's output.
func (w *worker) ready(ctx context.Context) error {
	read := make(chan error, 1)
	go func() {
		line, err := w.out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &w.start)
		}
		read <- err
	}()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case err := <-read:
		if errors.Is(err, io.EOF) {
			err = errors.New("process ended")
		}
		return err
	case <-timeout.C:
		return fmt.Errorf("not ready after %s", startTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill kills the worker with this process id, and no other process.
func (c *workerGroup) kill(pid int) error {
	for _, w := range c.all {
		if !w.gone && w.pid() == pid {
			return w.end()
		}
	}
	return fmt.Errorf("process %d is not one of the workers %s", pid, c)
}

// end kills a worker and waits until it is gone. It is never stopped gently: the demo shows
// what happens after a crash.
func (w *worker) end() error {
	w.gone = true
	err := w.cmd.Process.Kill()
	var exit *exec.ExitError
	if errWait := w.cmd.Wait(); errWait != nil && !errors.As(errWait, &exit) {
		err = errors.Join(err, errWait)
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// stop kills all workers that still run.
func (c *workerGroup) stop() error {
	var errs []error
	for _, w := range c.all {
		if !w.gone {
			errs = append(errs, w.end())
		}
	}
	return errors.Join(errs...)
}

// sum returns the sum of a metric over all workers that still run.
func (c *workerGroup) sum(ctx context.Context, name string) (int, error) {
	total := 0
	for _, w := range c.all {
		if w.gone {
			continue
		}
		n, err := scrape(ctx, w.start.HTTP, name)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// String lists the process ids of all workers that still run.
func (c *workerGroup) String() string {
	var pids []string
	for _, w := range c.all {
		if !w.gone {
			pids = append(pids, strconv.Itoa(w.pid()))
		}
	}
	return strings.Join(pids, " and ")
}

// logTail returns the end of the workers' logs, for error messages.
func (c *workerGroup) logTail() string {
	const most = 10
	var b strings.Builder
	for _, w := range c.all {
		text, err := os.ReadFile(w.log)
		if err != nil || len(text) == 0 {
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		fmt.Fprintf(&b, "\nlog of worker process %d:\n%s", w.pid(), bytes.Join(lines[max(0, len(lines)-most):], []byte("\n")))
	}
	return b.String()
}

// quietEnvironment returns env without the settings that would change how the workers run.
func quietEnvironment(env []string) []string {
	quiet := []string{}
	for _, entry := range env {
		if !strings.HasPrefix(entry, "ONETURN_") && !strings.HasPrefix(entry, "LOG_LEVEL=") && !strings.HasPrefix(entry, "LOGS_AS_JSON=") {
			quiet = append(quiet, entry)
		}
	}
	return quiet
}
