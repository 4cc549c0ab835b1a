package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/outbound"
	"github.com/oneturn/oneturn/internal/process"
	"github.com/oneturn/oneturn/internal/redact"
)

// The process of a server: open starts it, supervise owns it to its end, stdin writes the messages of the SDK, end
// and kill stop it. stdio_messages.go reads what it prints.

const drainGrace = 200 * time.Millisecond // for the last output of a process that is gone

// stdio reaches a server by starting it.
type stdio struct{ server *server }

func (t stdio) fix() string {
	return fmt.Sprintf("try its command by hand, or correct it in the manifest (servers: %s: command)", t.server.to.Name)
}

// child is the process of a server, in a separate process group.
type child struct {
	session    *session
	cmd        *exec.Cmd
	envSecrets redact.Set // values of its environment
	stdin      *os.File
	reader     *io.PipeReader // the messages of the server, without what else it prints
	errors     process.Output
	begun      chan error
	exited     chan struct{}

	mu     sync.Mutex
	why    string // it was killed because of its output; "" if not
	large  bool   // because of the size of a message
	reaped bool   // its pid may be reused
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
			t.server.log.Warn("the file of a variable of an MCP server cannot be used", "variable", name, "err", err)
			if own := (*events.Error)(nil); errors.As(err, &own) {
				err = errors.New(own.Msg) // the rest names the file, which only operators may see
			}
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		cmd.Env = append(cmd.Env, name+"="+text)
		if value.File != "" {
			secrets = append(secrets, strings.TrimPrefix(text, value.Prefix))
		}
	}
	c := &child{session: s, cmd: cmd, envSecrets: redact.New(redact.Options{Lines: true}, secrets...), begun: make(chan error, 1), exited: make(chan struct{})}
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
	ours, theirs, err := process.OpenPipes(true, false, false)
	if err != nil {
		c.begun <- err
		return
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	process.Isolate(c.cmd)
	err = c.cmd.Start()
	process.CloseAll(theirs)
	if err != nil {
		process.CloseAll(ours)
		c.begun <- startError(err)
		return
	}
	log := c.session.server.log.With("pid", c.cmd.Process.Pid)
	log.Debug("MCP server started", "program", c.cmd.Path)
	c.stdin = ours[0]
	reader, writer := io.Pipe()
	c.reader = reader
	c.session.probe.abandon = func(id json.RawMessage) { _, _ = writer.Write(unanswered(id)) } // it gets initialize, in the same process
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
	process.CloseAll(ours)
	log.Debug("MCP server ended", "state", c.cmd.ProcessState.String())
	close(c.exited)
}

// startError is why a program does not start, without the details that the system adds.
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

func (c *child) secrets() redact.Set { return c.envSecrets }

func (c *child) explain(err error) string {
	return excerpt.Line(c.envSecrets.Text(err.Error()), maxText)
}

// Connect implements [mcp.Transport].
func (c *child) Connect(ctx context.Context) (mcp.Connection, error) {
	t := mcp.IOTransport{Reader: c.reader, Writer: stdin{c}, MaxLineLength: -1} // lines are bounded before
	return t.Connect(ctx)                                                       //nolint:wrapcheck // the SDK's own
}

// stdin is what the SDK writes messages to.
type stdin struct{ *child }

func (w stdin) Write(p []byte) (int, error) {
	u := w.session.activeCall()
	calls := u != nil && bytes.Contains(p, []byte(`"method":"tools/call"`))
	if calls {
		u.sent(true)
	}
	w.session.sending(p)
	n, err := w.stdin.Write(p)
	if calls && err != nil && n < len(p)-1 {
		u.sent(false) // an incomplete message does not count
	}
	if u != nil && err == nil {
		u.wrote(p)
	}
	w.session.answered(p)
	return n, err //nolint:wrapcheck // the SDK's
}

// Close closes the input of the process, which requests its end.
func (w stdin) Close() error {
	if err := w.stdin.Close(); !errors.Is(err, os.ErrClosed) {
		return err //nolint:wrapcheck // the SDK's
	}
	return nil
}

// cut kills the process because it prints more than is read.
func (c *child) cut(large bool, why string) {
	c.mu.Lock()
	c.large, c.why = large, why
	c.mu.Unlock()
	c.kill()
}

func (c *child) tooLarge() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.large
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
	_ = c.reader.Close() // nothing reads from it any more: its writer must not block
	<-c.exited
}

func (c *child) reason() string {
	c.mu.Lock()
	why := c.why
	c.mu.Unlock()
	if why != "" {
		return why
	}
	select {
	case <-c.exited:
	case <-time.After(2 * drainGrace): // the connection may end a little before
		return ""
	}
	text := "it ended (" + c.cmd.ProcessState.String() + ")"
	if last := c.errors.LastLine(); last != "" {
		text += "; the last that it printed: " + excerpt.Line(last, maxText)
	}
	return text
}
