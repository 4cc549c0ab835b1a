package demo

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

// crew is the worker processes.
type crew struct {
	o    Options
	dir  string   // of their logs
	args []string // of each
	env  []string // of each

	all []*worker
}

// worker is one worker process.
type worker struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	log   string // file with what it wrote to standard error
	start struct {
		HTTP string `json:"http"`
	}
	gone bool
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

// startTimeout bounds the start of a worker, most of which is Python's.
const startTimeout = 20 * time.Second

// hire starts a worker and waits until it consumes: that is when it prints its start.
func (c *crew) hire(ctx context.Context) (*worker, error) {
	w := &worker{cmd: exec.Command(c.o.Worker, c.args...), log: filepath.Join(c.dir, fmt.Sprintf("worker-%d.log", len(c.all)+1))} //nolint:noctx // dismiss kills it, in every case
	w.cmd.Env, w.cmd.Dir = c.env, c.dir
	diesWithUs(w.cmd)
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
		return nil, fmt.Errorf("start a worker: %w: build it with make build, or name it with --worker PATH", err)
	}
	w.out = bufio.NewReader(out)
	c.all = append(c.all, w)
	if err := w.ready(ctx); err != nil {
		return nil, fmt.Errorf("start worker %s: %w%s", c.o.Worker, err, c.lastWords())
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
			err = errors.New("it ended")
		}
		return err
	case <-timeout.C:
		return fmt.Errorf("it was not ready after %s", startTimeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill kills the worker with this process id, and no other process.
func (c *crew) kill(pid int) error {
	for _, w := range c.all {
		if !w.gone && w.pid() == pid {
			return w.end()
		}
	}
	return fmt.Errorf("process %d is none of our workers %s", pid, c)
}

// end kills a worker and waits until it is gone. There is no gentle way: that is the point.
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

// dismiss kills all that are left.
func (c *crew) dismiss() error {
	var errs []error
	for _, w := range c.all {
		if !w.gone {
			errs = append(errs, w.end())
		}
	}
	return errors.Join(errs...)
}

// sum adds a metric up over all workers that live.
func (c *crew) sum(ctx context.Context, name string) (int, error) {
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

// String lists the process ids of all workers that live.
func (c *crew) String() string {
	var pids []string
	for _, w := range c.all {
		if !w.gone {
			pids = append(pids, strconv.Itoa(w.pid()))
		}
	}
	return strings.Join(pids, " and ")
}

// lastWords is the end of the workers' logs, for the case that something went wrong.
func (c *crew) lastWords() string {
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

// quietEnvironment is an environment without settings that would change how the workers run.
func quietEnvironment(env []string) []string {
	quiet := []string{}
	for _, entry := range env {
		if !strings.HasPrefix(entry, "ONETURN_") && !strings.HasPrefix(entry, "LOG_LEVEL=") && !strings.HasPrefix(entry, "LOGS_AS_JSON=") {
			quiet = append(quiet, entry)
		}
	}
	return quiet
}
