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
const envRole = "TURNTEST_ROLE"

// Role is what a process of a test does until ctx ends, which a SIGTERM brings about.
type Role func(ctx context.Context) error

// RunRole runs the role that this process was started for by [StartProcess] and reports
// true when it has ended; in the process of the tests it does nothing and reports false. Call
// it first in TestMain:
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
		fmt.Fprintf(os.Stderr, "oneturntest: no role %q\n", name)
		os.Exit(2) //nolint:forbidigo // the main function of a process of its own
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that holds the other end
		os.Exit(3)                           //nolint:forbidigo // nobody is left to test
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // a process of its own
	begun := os.NewFile(begunFD, "begun")
	_, _ = begun.Write([]byte{1}) // a test that does not wait for it has gone
	_ = begun.Close()
	err := role(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "oneturntest: %s: %v\n", name, err)
		os.Exit(1) //nolint:forbidigo // the main function of a process of its own
	}
	return true
}

// begunFD is where a process says that it heeds SIGTERM.
const begunFD = 3

// Process is the test binary, started again in another role, to be killed and paused.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.Closer // its end tells the process that the test is gone
	done   chan struct{}
	result error
}

// StartProcess starts the test binary in a role, with additional environment variables
// (NAME=value), and waits until it heeds signals. It is killed at the end of the test.
func StartProcess(t testing.TB, role string, env ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return StartBinary(t, self, role, env...)
}

// StartBinary is [StartProcess] with another test binary, such as that of another commit.
func StartBinary(t testing.TB, binary, role string, env ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.CommandContext(context.WithoutCancel(t.Context()), binary), done: make(chan struct{})}
	var err error
	p.cmd.Env = append(append(os.Environ(), env...), envRole+"="+role)
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	begun, say, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.ExtraFiles = []*os.File{say}
	err = p.cmd.Start()
	require.NoError(t, errors.Join(err, say.Close()))
	_, _ = begun.Read([]byte{0}) // nothing comes from one that ends before
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

// Stop asks the process to end with SIGTERM and waits up to a limit. The error is its exit
// code's, or says that it did not end.
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
