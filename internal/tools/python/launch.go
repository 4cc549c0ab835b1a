package python

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/process"
	"github.com/oneturn/oneturn/internal/redact"
)

// From the command to the end of a process: run starts supervise, which keeps the thread that started it; write
// and read move frames; everything that ends comes together in failCalls (replace.go).

// launch is what a child is started with.
type launch struct {
	workflow string
	root     string
	python   string // chosen interpreter, may be ""
	allow    []string
	maxFrame int
	maxMem   int64
	grace    time.Duration
	load     time.Duration
	environ  *environment      // of the version of the workflow
	sources  map[string][]byte // Python files, relative to the workflow's folder, to run instead of those on the disk
}

// startError describes a call that was never reached because its process could not start.
func (l launch) startError(op, text string) error {
	at, err := locate(l.root, l.workflow)
	if err != nil {
		return toolError(op, "Python could not be started: %s; the tool was not entered", text)
	}
	name, err := interpreter(l.python, at.folder, l.root)
	if err != nil {
		return toolError(op, "Python could not be started: %s; the tool was not entered", text)
	}
	return toolError(op, "Python could not be started with %s: %s; the tool was not entered; "+
		"try the interpreter by hand or set another with --python", name, text)
}

// run starts the process and its supervisor.
func (c *child) run() {
	c.mu.Lock()
	killed := c.ended
	c.mu.Unlock()
	err := errGone
	if !killed {
		started := make(chan error, 1)
		go c.supervise(started)
		err = <-started
	}
	if err == nil {
		return
	}
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if !killed {
		c.err = c.launch.startError("start Python", err.Error())
	}
	c.group.exited(c)
	close(c.gone)
}

// supervise owns the process from its start to its end. It keeps its thread for all that
// time, because the kernel kills the child when the thread that started it ends.
func (c *child) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mark := newMark()
	cmd, boot, secrets, err := c.launch.command(c.log, mark)
	if err != nil {
		started <- err
		return
	}
	ours, theirs, err := process.OpenPipes(true, false, false, false) // frames on file descriptors 3 and 4, and its output
	if err != nil {
		started <- err
		return
	}
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = theirs[:2], theirs[2], theirs[3]
	err = cmd.Start()
	process.CloseAll(theirs)
	if err != nil {
		process.CloseAll(ours)
		started <- err
		return
	}
	c.mu.Lock()
	c.pid = cmd.Process.Pid
	if c.ended {
		process.KillGroup(c.pid)
	}
	c.starting = time.AfterFunc(c.launch.load, c.startTimeout)
	c.mu.Unlock()
	c.frames <- boot
	started <- nil

	log := c.log.With("pid", cmd.Process.Pid)
	log.Debug("Python process started", "interpreter", cmd.Path)
	envSecrets := redact.New(redact.Options{Lines: true}, secrets...)
	stdout := &output{log: log.With("stream", "stdout"), mark: "\x1e" + mark, callOf: c.callOf, envSecrets: envSecrets, scrub: c.scrub}
	stderr := &output{log: log.With("stream", "stderr"), mark: "\x1e" + mark, callOf: c.callOf, envSecrets: envSecrets, scrub: c.scrub}
	var readers, writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() { c.write(ours[0], stop) })
	readers.Go(func() { c.read(ours[1]) })
	readers.Go(func() { stdout.copy(ours[2]) })
	readers.Go(func() { stderr.copy(ours[3]) })

	waitErr := cmd.Wait()
	process.KillGroup(cmd.Process.Pid) // of processes that the tools have started
	c.mu.Lock()
	c.ended = true
	c.starting.Stop()
	c.mu.Unlock()
	close(stop)
	_ = ours[0].Close()
	for _, f := range ours[1:] {
		_ = f.SetReadDeadline(time.Now().Add(drainGrace)) // a process that left the group may hold the other end
	}
	readers.Wait()
	writer.Wait()
	process.CloseAll(ours[1:])
	log.Debug("Python process ended", "state", cmd.ProcessState.String(), "error", waitErr)
	c.failCalls(cmd.ProcessState, stderr.LastLine())
}

// command prepares the process: its interpreter, environment and first frame.
func (l launch) command(log *slog.Logger, mark string) (cmd *exec.Cmd, boot []byte, secrets []string, err error) {
	at, err := locate(l.root, l.workflow)
	if err != nil {
		return nil, nil, nil, err
	}
	python, err := interpreter(l.python, at.folder, l.root)
	if err != nil {
		return nil, nil, nil, err
	}
	dotEnv, err := filepath.Rel(l.root, filepath.Join(at.folder, ".env"))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("find the workflow's .env: %w", err)
	}
	env, secrets, err := l.environ.build(log, os.Environ(), l.allow, l.root, dotEnv)
	if err != nil {
		return nil, nil, nil, err
	}
	boot, err = bootFrame(hostConfig{
		Root: at.root, Folder: at.folder, Workflow: filepath.Base(at.folder), MaxFrame: l.maxFrame, MaxMemory: l.maxMem,
		Sources: l.sources, Mark: mark,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	cmd = exec.Command(python, "-c", script("host/boot.py")) //nolint:noctx // outlives the call that starts it
	cmd.Dir = filepath.Dir(at.root)
	cmd.Env = env
	process.Isolate(cmd)
	return cmd, boot, secrets, nil
}

// write sends frames until the process ends. It runs in a separate goroutine, so that a process
// that does not read blocks no caller.
func (c *child) write(in *os.File, stop <-chan struct{}) {
	for {
		select {
		case frame := <-c.frames:
			if _, err := in.Write(frame); err != nil {
				c.kill("")
				return
			}
		case f := <-c.asyncFrames:
			if f.written != nil {
				f.written()
			}
			if _, err := in.Write(f.frame); err != nil {
				c.kill("")
				return
			}
		case <-c.quit:
			_ = in.Close()
			return
		case <-stop:
			return
		}
	}
}

// read takes frames until the process closes its end or breaks the protocol; both end it.
func (c *child) read(out *os.File) {
	in := bufio.NewReader(out)
	for {
		r, err := readReply(in, c.launch.maxFrame+frameSlack)
		if err != nil {
			if errors.Is(err, io.EOF) {
				c.kill("") // its exit status has the reason
				return
			}
			c.mu.Lock()
			c.lostFrames = true
			c.mu.Unlock()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				c.kill("")
				return
			}
			c.log.Warn("a Python process broke the frame protocol", "error", err)
			c.kill("it broke the frame protocol")
			return
		}
		c.deliver(r)
	}
}
