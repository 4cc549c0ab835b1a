//go:build chaos

package gatewaychaos_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is a command of the product that a test kills, pauses and starts again. Its methods are safe for concurrent use.
type program struct {
	name string
	path string
	args []string
	log  *os.File

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func newProgram(t *testing.T, name, path string, args ...string) *program {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	require.NoError(t, err)
	p := &program{name: name, path: path, args: args, log: log}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		_ = log.Close()
	})
	require.NoError(t, p.start())
	return p
}

// start starts the program, which must have ended.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := exec.CommandContext(context.Background(), p.path, p.args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w: run make build", p.name, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed, mostly
		close(done)
	}()
	p.cmd, p.done = cmd, done
	return nil
}

// end sends a signal that ends the program, and waits for its end, at most for a while: then it is killed.
func (p *program) end(s syscall.Signal) {
	p.mu.Lock()
	cmd, done := p.cmd, p.done
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s) // may have ended
	const limit = 30 * time.Second
	select {
	case <-done:
	case <-time.After(limit):
		_ = cmd.Process.Kill() // may have ended
		<-done
	}
}

func (p *program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s) // may have ended
}

func (p *program) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// ended reports whether the program has ended, by itself if nothing has ended it.
func (p *program) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail returns the end of the log.
func (p *program) tail() string {
	const most = 3000
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return p.name + ":\n" + string(text[max(0, len(text)-most):])
}
