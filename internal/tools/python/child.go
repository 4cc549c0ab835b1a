package python

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/internal/tools"
)

// One process as its calls see it: call passes it a call, wait returns how the call ends, deliver takes the frames
// of the process, finish ends a call and releases the reservation.

const (
	drainGrace = 200 * time.Millisecond // for the last output of a process that is gone
	maxShared  = 64                     // async calls that share a child
	maxWaiting = 1000                   // calls of a child that wait for an answer and take no slot
	exitGrace  = 2 * time.Second        // for what a process has to do at its end
)

// errBusy reports that a child returned a call: another one blocks its event loop.
var errBusy = errors.New("the event loop of the Python process is blocked")

// errGone reports that a child ended before it could take a call.
var errGone = errors.New("the Python process is gone")

// child is one Python process. It is started by its first call. The caller of a function reserves
// the child in its [group] first; the end of the call releases it. A call passes through call, wait, deliver (once for
// each frame of the process) and finish; launch.go starts and supervises the process, operations.go does what the call
// asks of its host, replace.go ends the process.
type child struct {
	group  *group // that assigns its calls
	launch launch
	log    *slog.Logger

	start       sync.Once
	frames      chan []byte     // to the writer; has room for all calls
	asyncFrames chan asyncFrame // to the writer, from goroutines that may wait
	hello       chan struct{}   // closed when the process is ready for calls
	quit        chan struct{}   // closed when the process is to end by itself
	gone        chan struct{}   // closed when the process and its readers have ended

	mu          sync.Mutex
	pid         int
	starting    *time.Timer // bounds the time until it is ready
	ready       bool        // for calls
	ending      bool        // quit is closed
	ended       bool        // takes no more calls
	lostFrames  bool        // frames may have been lost
	reason      string
	evicted     bool  // ended because of one call, while others ran
	err         error // why it could not start; final once gone is closed
	calls       map[uint64]*pending
	recentCalls loggedCalls
	secretCalls atomic.Pointer[[]*pending] // calls that got secret answers; replaced under the lock
	withheld    atomic.Bool                // its output may hold secrets that are no longer known
}

func newChild(g *group, l launch, log *slog.Logger) *child {
	return &child{
		group: g, launch: l, log: log, calls: map[uint64]*pending{},
		hello: make(chan struct{}), quit: make(chan struct{}), gone: make(chan struct{}),
		frames:      make(chan []byte, 2*maxShared), //nolint:mnd // calls that continue after a question come on top
		asyncFrames: make(chan asyncFrame),
	}
}

// call runs one call in the child. The reservation of the child is passed on: it ends with
// the call, not with the return of this method. errGone means that the tool was not entered.
func (c *child) call(id uint64, frame []byte, p *pending) (*reply, error) {
	ctx := p.call
	defer c.closeHost(p)
	c.start.Do(c.run)
	select {
	case <-c.hello:
	case <-c.gone:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		c.group.release(c, false)
		return nil, tools.Ended(ctx, p.op, "while its Python process started; the tool was not entered")
	}
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		c.group.release(c, false)
		<-c.gone
		if c.err != nil {
			return nil, c.err
		}
		return nil, errGone
	}
	select {
	case c.frames <- frame:
		c.calls[id] = p
		c.recentCalls.add(loggedCall{id, p.tool, p.chat, p.turn})
		p.loading = time.AfterFunc(c.launch.load, func() { c.stuck(p) })
		c.mu.Unlock()
	default: // replies came without their calls being read
		c.mu.Unlock()
		c.kill("it broke the frame protocol")
		c.group.release(c, true)
		return nil, errGone
	}
	return c.wait(ctx, id, p)
}

// wait returns how a call ends. When ctx ends before the function was entered, it waits for
// the process to report that it will not enter it, or to be killed: only then that is certain.
func (c *child) wait(ctx context.Context, id uint64, p *pending) (*reply, error) {
	select {
	case <-p.entered:
		p.enter() // its time begins
		select {
		case o := <-p.done:
			return o.reply, o.err
		case <-ctx.Done():
		case <-p.halted:
			ctx = p.ctx
		}
	case o := <-p.done:
		p.ran()
		return o.reply, o.err
	case <-ctx.Done():
	case <-p.halted:
		ctx = p.ctx
	}
	if !c.abandon(ctx, id) { // it ended at the same moment
		p.ran()
		o := <-p.done
		return o.reply, o.err
	}
	select {
	case <-p.entered:
	case <-p.done:
	}
	if p.ran() {
		return nil, tools.Ended(ctx, p.op, "while "+p.function+" was running; what it did until then stays done")
	}
	return nil, tools.Ended(ctx, p.op, "before "+p.function+" began; the tool was not entered")
}

// abandon asks the process to cancel a call and kills the process if that takes too long.
func (c *child) abandon(ctx context.Context, id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.calls[id]
	if p == nil {
		return false
	}
	p.abandoned = time.AfterFunc(c.launch.grace, func() { c.overdue(p) })
	go c.sendAsync(cancelRequest(id, errors.Is(context.Cause(ctx), tools.ErrParked)), nil)
	return true
}

// finish ends one call.
func (c *child) finish(id uint64, o outcome) {
	c.mu.Lock()
	p := c.calls[id]
	delete(c.calls, id)
	if p == nil {
		c.mu.Unlock()
		return
	}
	p.loading.Stop()
	if p.abandoned != nil {
		p.abandoned.Stop()
	}
	if o.reply != nil && o.reply.Error == nil {
		p.begin() // even if no frame has reported it
	}
	c.mu.Unlock()
	c.settle(p)
	c.group.release(c, o.reply != nil && o.reply.Error != nil && o.reply.Error.Replace)
	c.endSpent()
	p.done <- o // after the release, so that the caller's next call finds the process free
}

// deliver takes one frame of the process.
func (c *child) deliver(r *reply) {
	switch {
	case r.Hello:
		c.mu.Lock()
		if !c.ready {
			c.ready = true
			c.starting.Stop()
			close(c.hello)
		}
		c.mu.Unlock()
	case r.Entered:
		c.mu.Lock()
		p := c.calls[r.ID]
		if p != nil {
			p.async = r.Async
			p.begin()
		}
		c.mu.Unlock()
		if p != nil && r.Async {
			c.group.markAsync(c, p.key)
		}
	case r.Op != "":
		c.operate(r)
	case r.Blocked != "":
		c.blocked(r)
	case r.Free:
		c.group.stall(c, "", false)
	case r.Back:
		c.finish(r.ID, outcome{err: errBusy})
	default:
		c.finish(r.ID, outcome{reply: r})
	}
}

// callOf returns what log records contain of a call.
func (c *child) callOf(id uint64) loggedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.calls[id]; p != nil {
		return loggedCall{id, p.tool, p.chat, p.turn} // however many came since it began
	}
	return c.recentCalls.of(id)
}

// blocked records that a call blocks the event loop, so that others use other processes.
func (c *child) blocked(r *reply) {
	c.mu.Lock()
	pid, function := c.pid, ""
	if p := c.calls[r.ID]; p != nil {
		function = p.key
	}
	c.mu.Unlock()
	c.log.With(c.callOf(r.ID).attrs()...).Warn("a tool blocks the event loop of its Python process: async calls in it wait, others go to other processes",
		"pid", pid, "at", r.Blocked)
	c.group.stall(c, function, true)
}
