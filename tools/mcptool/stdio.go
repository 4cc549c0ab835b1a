package mcptool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/process"
)

const (
	drainGrace = 200 * time.Millisecond // for the last output of a process that is gone
	minSecret  = 6                      // shorter values of files are not blotted out of the log
)

// stdio reaches a server by starting it.
type stdio struct{ server *server }

func (t stdio) mend() string {
	return fmt.Sprintf("try its command by hand, or correct it in the manifest (servers: %s: command)", t.server.to.Name)
}

func (stdio) explain(err error) string { return bounded(err.Error()) }

// child is the process of a server, in a group of its own.
type child struct {
	session *session
	cmd     *exec.Cmd
	clean   *strings.Replacer // of secrets; nil if it was given none
	stdin   *os.File
	reader  *io.PipeReader // what the server says, without what is no message
	errors  process.Output
	begun   chan error
	exited  chan struct{}

	mu     sync.Mutex
	most   int  // it was killed for a message of more bytes than these; else 0
	reaped bool // its number may be another's
}

func (t stdio) open(_ context.Context, s *session) (link, error) {
	to := t.server.to
	cmd := exec.Command(to.Command[0], to.Command[1:]...) //nolint:noctx // it outlives the call that starts it
	cmd.Dir = to.Dir
	cmd.Env = process.Environment(os.Environ(), t.server.o.Env)
	var secrets []string
	for name, value := range to.Env {
		text, err := outbound.Text(value)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		cmd.Env = append(cmd.Env, name+"="+text)
		if bare := strings.TrimPrefix(text, value.Prefix); value.File != "" && len(bare) >= minSecret {
			secrets = append(secrets, bare, "***")
		}
	}
	c := &child{session: s, cmd: cmd, begun: make(chan error, 1), exited: make(chan struct{})}
	if len(secrets) > 0 {
		c.clean = strings.NewReplacer(secrets...)
	}
	go c.supervise()
	if err := <-c.begun; err != nil {
		return nil, err
	}
	return c, nil
}

// supervise owns the process from its start to its end. It keeps its thread for all that time,
// because the kernel kills the child when the thread that started it ends.
func (c *child) supervise() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ours, theirs [3]*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(slices.Concat(ours[:], theirs[:])...)
			c.begun <- fmt.Errorf("open pipes: %w", err)
			return
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	process.Isolate(c.cmd)
	err := c.cmd.Start()
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(ours[:]...)
		c.begun <- startError(err)
		return
	}
	log := c.session.server.log.With("pid", c.cmd.Process.Pid)
	log.Debug("MCP server started", "program", c.cmd.Path)
	c.stdin = ours[0]
	reader, writer := io.Pipe()
	c.reader = reader
	c.begun <- nil

	var readers sync.WaitGroup
	readers.Go(func() { c.messages(ours[1], writer, log.With("stream", "stdout")) })
	readers.Go(func() { c.printed(ours[2], log.With("stream", "stderr")) })
	_ = c.cmd.Wait()
	c.mu.Lock()
	c.reaped = true
	c.mu.Unlock()
	process.KillGroup(c.cmd.Process.Pid) // what the server has started
	for _, f := range ours[1:] {
		_ = f.SetReadDeadline(time.Now().Add(drainGrace)) // a process that left the group may hold the other end
	}
	readers.Wait()
	closeAll(ours[:]...)
	log.Debug("MCP server ended", "state", c.cmd.ProcessState.String())
	close(c.exited)
}

// startError says why a program does not start, without what the system adds of its own.
func startError(err error) error {
	var path *os.PathError
	var lookup *exec.Error
	switch {
	case errors.As(err, &lookup):
		return fmt.Errorf("its program %q cannot be found: %w", lookup.Name, lookup.Err)
	case errors.As(err, &path):
		return fmt.Errorf("%s %s: %w", path.Op, path.Path, path.Err)
	}
	return fmt.Errorf("start its program: %w", err)
}

func (c *child) blot(text string) string {
	if c.clean == nil {
		return text
	}
	return c.clean.Replace(text)
}

// Connect implements [mcp.Transport].
func (c *child) Connect(ctx context.Context) (mcp.Connection, error) {
	t := mcp.IOTransport{Reader: c.reader, Writer: stdin{c}, MaxLineLength: -1} // lines are bounded before
	return t.Connect(ctx)                                                       //nolint:wrapcheck // the SDK's own
}

// stdin is what the SDK writes messages to.
type stdin struct{ *child }

func (w stdin) Write(p []byte) (int, error) {
	u := w.session.underway()
	calls := u != nil && bytes.Contains(p, []byte(`"method":"tools/call"`))
	if calls {
		u.sent(true)
	}
	n, err := w.stdin.Write(p)
	if calls && err != nil && n < len(p)-1 {
		u.sent(false) // half a message is none
	}
	if u != nil && err == nil {
		u.wrote(p)
	}
	return n, err //nolint:wrapcheck // the SDK's
}

// Close closes the input of the process, by which it is told to end.
func (w stdin) Close() error {
	if err := w.stdin.Close(); !errors.Is(err, os.ErrClosed) {
		return err //nolint:wrapcheck // the SDK's
	}
	return nil
}

// cut kills the process because it says more than anybody reads.
func (c *child) cut(most int) {
	c.mu.Lock()
	c.most = most
	c.mu.Unlock()
	c.kill()
}

func (c *child) tooLarge() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most > 0
}

func (c *child) drop() { c.kill() }

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		process.KillGroup(c.cmd.Process.Pid)
	}
}

func (c *child) end(grace time.Duration) {
	_ = stdin{c}.Close()
	if grace > 0 {
		select {
		case <-c.exited:
			return
		case <-time.After(grace):
		}
	}
	c.kill()
	_ = c.reader.Close() // nobody reads any more: what is read must not wait for it
	<-c.exited
}

func (c *child) reason() string {
	c.mu.Lock()
	most := c.most
	c.mu.Unlock()
	if most > 0 {
		return fmt.Sprintf("a message of it has more than %d bytes", most)
	}
	select {
	case <-c.exited:
	case <-time.After(2 * drainGrace): // the connection may end a little before
		return ""
	}
	text := "it ended (" + c.cmd.ProcessState.String() + ")"
	if last := c.errors.LastLine(); last != "" {
		text += "; the last that it printed: " + bounded(last)
	}
	return text
}
