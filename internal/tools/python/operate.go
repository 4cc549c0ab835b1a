package python

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/tools"
)

// posted is a frame for a process that nobody waits for.
type posted struct {
	frame   []byte
	written func() // told before the process can have read it; may be nil
}

// post sends a frame, whenever the process reads it.
func (c *child) post(frame []byte, written func()) {
	select {
	case c.posts <- posted{frame, written}:
	case <-c.gone:
	}
}

// operate takes an operation of a call to its desk. It is called by the reader of the process
// and does not wait.
func (c *child) operate(r *reply) {
	c.mu.Lock()
	p := c.calls[r.ID]
	c.mu.Unlock()
	if p == nil {
		return // it has ended meanwhile
	}
	if r.Op == "forget" {
		c.mu.Lock()
		cancel := p.open[r.N]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
		return
	}
	do, err := p.reader.Read(r.Op, r.Body)
	if err != nil {
		c.failf(p, "it broke the protocol of its desk: %v", err)
		return
	}
	c.mu.Lock()
	_, twice := p.open[r.N]
	full := len(p.open) >= operation.MaxOpen
	if p.closed || twice || full {
		c.mu.Unlock()
		if twice || full {
			c.failf(p, "it broke the protocol of its desk: operation %d beside %d open ones", r.N, operation.MaxOpen)
		}
		return
	}
	ctx, cancel := context.WithCancel(p.atDesk())
	if p.open == nil {
		p.open = map[uint64]context.CancelFunc{}
	}
	p.open[r.N] = cancel
	p.work.Add(1)
	c.mu.Unlock()
	if r.Op == "ask" {
		c.asks(p, +1)
	}
	go func() {
		defer p.work.Done()
		defer cancel()
		c.finishOperation(ctx, p, r, do)
	}()
}

// finishOperation does an operation and has the reply sent. When the call has ended there is none:
// the process ends what waits for it.
func (c *child) finishOperation(ctx context.Context, p *pending, r *reply, do operation.Operation) {
	var value operation.Reply
	err := operation.NoHost(p.op)
	if p.desk != nil {
		value, err = do(ctx, p.desk)
	}
	if r.Op == "ask" {
		c.asks(p, -1)
		c.confide(p)
	}
	if p.ctx.Err() != nil {
		return
	}
	answer := request{ID: r.ID, Op: "reply", N: r.N}
	switch {
	case err == nil:
		answer.Value = &value
	case errors.Is(err, tools.ErrParked):
		c.stop(p, tools.ErrParked)
		return
	case ctx.Err() != nil: // the tool has given it up and reads no reason
		answer.Error = &operation.Refusal{Code: events.CodeCancelled}
	default:
		if answer.Error, err = operation.Refuse(r.Op, err); err != nil {
			c.stop(p, fault{err})
			return
		}
		c.mu.Lock()
		if p.told == nil {
			p.told = map[events.Code]bool{}
		}
		p.told[answer.Error.Code] = true
		c.mu.Unlock()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		c.failf(p, "its desk gave no JSON: %v", err)
		return
	}
	go c.post(frame(body), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(p.open, r.N)
	})
}

// asks takes note that a call has one open question more or less. A call with open questions
// takes no room in its process.
func (c *child) asks(p *pending, change int) {
	p.room.Lock()
	defer p.room.Unlock()
	if p.over {
		return
	}
	p.asks += change
	switch {
	case p.asks > 0 && !p.away:
		p.away = c.leave(c)
	case p.asks == 0 && p.away:
		p.away = false
		c.back(c, p.isAsync(c))
	}
}

// settle gives a call that has ended its room back, for the release that follows.
func (c *child) settle(p *pending) {
	p.room.Lock()
	defer p.room.Unlock()
	p.over = true
	if p.away {
		p.away = false
		c.back(c, p.isAsync(c))
	}
}

func (p *pending) isAsync(c *child) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.async
}

// failf ends a call, of which the process is told like of a cancellation.
func (c *child) failf(p *pending, format string, args ...any) {
	c.stop(p, fault{toolError(p.op, p.function+" was stopped: "+format, args...)})
}

// stop ends a call from its desk.
func (c *child) stop(p *pending, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.atDesk()
	p.stop(why)
	if !p.halt {
		p.halt = true
		close(p.halted)
	}
}

// leaveDesk ends what the call still does at its desk, and waits for that.
func (c *child) leaveDesk(p *pending) {
	c.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop(nil)
	}
	c.mu.Unlock()
	p.work.Wait()
}
