package python

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"
)

const (
	startGrace = 10 * time.Second       // for a process to say hello, when its first call is cancelled
	drainGrace = 200 * time.Millisecond // for the last output of a process that is gone
	maxShared  = 64                     // async calls that share a child
)

// errGone says that a child ended before it could take a call.
var errGone = errors.New("the Python process is gone")

// pending is a call that a child has taken.
type pending struct {
	op        string
	function  string
	done      chan outcome // buffered, gets exactly one
	abandoned *time.Timer  // set once the caller has gone
}

// outcome is how a call ended: a reply, or an error of the process around it.
type outcome struct {
	reply *reply
	err   error
}

// child is one Python process. It is started by its first call. Whoever runs a call reserves
// the child in its [group] first; the end of the call, whenever it comes, releases it.
type child struct {
	launch  launch
	log     *slog.Logger
	async   func(c *child, id uint64) // a call's function proved to be async
	release func(c *child, replace bool)
	exited  func(*child)

	start  sync.Once
	frames chan []byte   // to the writer; roomy enough for all calls and cancellations
	gone   chan struct{} // closed when the process and its readers have ended

	mu     sync.Mutex
	pid    int
	ready  bool // said hello
	ended  bool // takes no more calls
	reason string
	err    error // why it could not start; final once gone is closed
	calls  map[uint64]*pending
}

func newChild(l launch, log *slog.Logger) *child {
	return &child{
		launch: l, log: log, calls: map[uint64]*pending{}, gone: make(chan struct{}),
		frames: make(chan []byte, 4*maxShared), //nolint:mnd // a call and its cancellation, twice over
	}
}

// call runs one call in the child. The reservation of the child is passed on: it ends with
// the call, not with the return of this method. errGone means that nothing was sent.
func (c *child) call(ctx context.Context, id uint64, frame []byte, p *pending) (*reply, error) {
	c.start.Do(c.run)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		c.release(c, false)
		<-c.gone
		if c.err != nil {
			return nil, c.err
		}
		return nil, errGone
	}
	select {
	case c.frames <- frame:
		c.calls[id] = p
		c.mu.Unlock()
	default: // replies came without their calls being read
		c.mu.Unlock()
		c.kill("it broke the frame protocol")
		c.release(c, true)
		return nil, errGone
	}
	select {
	case o := <-p.done:
		return o.reply, o.err
	case <-ctx.Done():
	}
	if c.abandon(id) {
		return nil, ended(ctx, p.op, "while "+p.function+" was running; what it did until then stays done")
	}
	o := <-p.done // it ended at the same moment
	return o.reply, o.err
}

// abandon asks the process to cancel a call and kills the process if that takes too long.
func (c *child) abandon(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.calls[id]
	if p == nil {
		return false
	}
	grace := c.launch.grace
	if !c.ready {
		grace += startGrace
	}
	p.abandoned = time.AfterFunc(grace, func() { c.kill("it was replaced because " + p.function + " did not end in time") })
	select {
	case c.frames <- cancelRequest(id):
	default: // the process reads nothing; the timer ends it
	}
	return true
}

// finish ends one call.
func (c *child) finish(id uint64, o outcome) {
	c.mu.Lock()
	p := c.calls[id]
	delete(c.calls, id)
	if p != nil && p.abandoned != nil {
		p.abandoned.Stop()
	}
	c.mu.Unlock()
	if p == nil {
		return
	}
	p.done <- o
	c.release(c, o.reply != nil && o.reply.Error != nil && o.reply.Error.Replace)
}

// deliver takes one frame of the process.
func (c *child) deliver(r *reply) {
	switch {
	case r.Hello:
		c.mu.Lock()
		c.ready = true
		c.mu.Unlock()
	case r.Async:
		c.async(c, r.ID)
	default:
		c.finish(r.ID, outcome{reply: r})
	}
}

// kill ends the process group. The first reason is the one that running calls are told.
func (c *child) kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason == "" {
		c.reason = reason
	}
	if c.pid > 0 && !c.ended {
		killGroup(c.pid)
	}
	if c.pid == 0 { // not started, or being started just now: run and supervise look at ended
		c.ended = true
		go c.start.Do(c.run)
	}
}

// bury tells every running call that the process has ended.
func (c *child) bury(state *os.ProcessState, lastLine string) {
	c.mu.Lock()
	calls := maps.Clone(c.calls)
	ready, reason := c.ready, c.reason
	c.mu.Unlock()
	c.exited(c)
	if !ready && reason == "" {
		c.err = c.launch.startError("start Python", fmt.Sprintf("it ended (%s) before it could run a tool: %s", state, lastLine))
	}
	for id, p := range calls {
		err := c.err
		if err == nil {
			err = toolError(p.op, "the Python process died (%s) while %s was running", exitText(state, reason), p.function)
		}
		c.finish(id, outcome{err: err})
	}
	close(c.gone)
}

func exitText(state *os.ProcessState, reason string) string {
	if reason != "" {
		return reason
	}
	if text := state.String(); text != "signal: killed" {
		return text
	}
	return "signal: killed, as the system does when memory runs out"
}
