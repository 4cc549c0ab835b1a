package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is the worker of a case in a separate process.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	done   chan struct{}
	result error
}

// startWorker starts this program as the worker of the case in folder.
func startWorker(ctx context.Context, folder, url, failpoints string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	stderr, err := os.OpenFile(filepath.Join(folder, "stderr"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	defer stderr.Close()
	p := &Process{cmd: exec.CommandContext(context.WithoutCancel(ctx), self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envFolder+"="+folder, envURL+"="+url,
		"ONETURN_FAILPOINTS="+failpoints, "ONETURN_FAILPOINT_LOG="+filepath.Join(folder, fileStrikes))
	p.cmd.Stdout, p.cmd.Stderr = stderr, stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() {
		p.result = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// killed reports whether the process has ended by SIGKILL, and why it has ended otherwise.
func (p *Process) killed() (killed bool, err error) {
	select {
	case <-p.done:
	default:
		return false, nil
	}
	var exit *exec.ExitError
	if errors.As(p.result, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return true, nil
		}
	}
	result := cmp.Or(p.result, errors.New("exit status 0"))
	return false, fmt.Errorf("the worker ended by itself: %w: stderr in the folder of the case has the reason, see --keep", result)
}

// stop ends the process gently, and after a time with force.
func (p *Process) stop() {
	_ = p.stdin.Close() // the worker drains
	t := time.NewTimer(10 * time.Second)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = p.cmd.Process.Kill() // may have ended
		<-p.done
	}
}
