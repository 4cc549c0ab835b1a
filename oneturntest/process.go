//go:build unix

package oneturntest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// envRole names the role of a process that [StartProcess] started.
const envRole = "ONETURNTEST_ROLE"

// Role is what a process of a test does, for example run a worker, until ctx ends, which SIGTERM causes.
type Role func(ctx context.Context) error

// RunRole runs the role for which [StartProcess] started this process and returns true when it
// has ended; in the test process itself it does nothing and returns false. Call it first in
// TestMain:
//
//	func TestMain(m *testing.M) {
//		if oneturntest.RunRole(map[string]oneturntest.Role{"worker": worker}) {
//			return
//		}
//		oneturntest.VerifyNoLeaks(m)
//	}
//
// A role that fails prints its error and ends the process with code 1. A process whose test
// process has died ends too.
func RunRole(roles map[string]Role) bool {
	name := os.Getenv(envRole)
	if name == "" {
		return false
	}
	role, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "oneturntest: unknown role %q: add it to the map of RunRole\n", name)
		os.Exit(2) //nolint:forbidigo // the main function of a separate process
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test process
		os.Exit(3)                           //nolint:forbidigo // the test process has ended
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a separate process
	begun := os.NewFile(begunFD, "begun")
	_, _ = begun.Write([]byte{1}) // fails if the test process has ended
	_ = begun.Close()
	err := role(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "oneturntest: %s: %v\n", name, err)
		os.Exit(1) //nolint:forbidigo // the main function of a separate process
	}
	return true
}

// begunFD is the descriptor to which a process writes once it handles SIGTERM.
const begunFD = 3

// Process is the test binary, started again in another role. A test can kill, pause and stop it.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.Closer // its end makes the process end with the test
	done   chan struct{}
	result error
}

// StartProcess starts the test binary in a role, with additional environment variables
// (NAME=value), and waits until it handles signals. It is killed at the end of the test.
func StartProcess(t testing.TB, role string, env ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return StartBinary(t, self, role, env...)
}

// StartBinary is [StartProcess] with another test binary, for example of another commit.
func StartBinary(t testing.TB, binary, role string, env ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.CommandContext(context.WithoutCancel(t.Context()), binary), done: make(chan struct{})}
	var err error
	p.cmd.Env = append(append(os.Environ(), env...), envRole+"="+role)
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	begun, write, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.ExtraFiles = []*os.File{write}
	err = p.cmd.Start()
	require.NoError(t, errors.Join(err, write.Close()))
	_, _ = begun.Read([]byte{0}) // returns immediately if the process has ended
	require.NoError(t, begun.Close())
	go func() {
		p.result = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.Kill)
	return p
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Kill ends the process with SIGKILL, also a paused one, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // may have ended
	<-p.done
}

// Pause stops the process with SIGSTOP: it keeps its connections and does nothing.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// Stop asks the process to end with SIGTERM and waits up to a limit. The error has its
// exit code, or reports that it did not end.
func (p *Process) Stop(limit time.Duration) error {
	p.signal(syscall.SIGTERM)
	return p.Wait(limit)
}

// Wait waits up to a limit for the process to end by itself.
func (p *Process) Wait(limit time.Duration) error {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.done:
		return p.result
	case <-t.C:
		return fmt.Errorf("process %d has not ended within %s", p.PID(), limit)
	}
}

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("signal %s to process %d: %v", s, p.PID(), err)
	}
}
