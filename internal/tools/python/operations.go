package python

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/tools"
)

// Operations of the host of a call: operate starts one for a frame of the process, finishOperation runs it and
// sends the reply. A call with open questions releases its slot; stop ends a call whose host ends it.

// asyncFrame is a frame for a process whose sender does not wait for its delivery.
type asyncFrame struct {
	frame   []byte
	written func() // called before the process can have read it; may be nil
}

// sendAsync sends a frame, whenever the process reads it.
func (c *child) sendAsync(frame []byte, written func()) {
	select {
	case c.asyncFrames <- asyncFrame{frame, written}:
	case <-c.gone:
	}
}

// operate starts an operation of a call by its host. It is called by the reader of the process
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
		c.failf(p, "it broke the protocol of its host: %v", err)
		return
	}
	c.mu.Lock()
	_, twice := p.open[r.N]
	full := len(p.open) >= operation.MaxOpen
	if p.closed || twice || full {
		c.mu.Unlock()
		if twice || full {
			c.failf(p, "it broke the protocol of its host: operation %d with %d open ones", r.N, operation.MaxOpen)
		}
		return
	}
	ctx, cancel := context.WithCancel(p.hostContext())
	if p.open == nil {
		p.open = map[uint64]context.CancelFunc{}
	}
	p.open[r.N] = cancel
	p.work.Add(1)
	c.mu.Unlock()
	if r.Op == "ask" {
		c.addOpenQuestions(p, +1)
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
	if p.host != nil {
		value, err = do(ctx, p.host)
	}
	if r.Op == "ask" {
		c.addOpenQuestions(p, -1)
		c.watchSecrets(p)
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
	case ctx.Err() != nil: // the tool has abandoned it and reads no reason
		answer.Error = &operation.Refusal{Code: events.CodeCancelled}
	default:
		answer.Quiet = errors.Is(err, tools.ErrNoTerminal)
		if answer.Error, err = operation.Refuse(r.Op, err); err != nil {
			c.stop(p, &tools.ProtocolError{Err: err})
			return
		}
		c.mu.Lock()
		if p.sentCodes == nil {
			p.sentCodes = map[events.Code]bool{}
		}
		p.sentCodes[answer.Error.Code] = true
		c.mu.Unlock()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		c.failf(p, "its host returned no JSON: %v", err)
		return
	}
	go c.sendAsync(frame(body), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(p.open, r.N)
	})
}

// addOpenQuestions records that a call has one open question more or less. A call with open questions
// takes no slot in its process.
func (c *child) addOpenQuestions(p *pending, change int) {
	p.slotMu.Lock()
	defer p.slotMu.Unlock()
	if p.over {
		return
	}
	p.openQuestions += change
	switch {
	case p.openQuestions > 0 && !p.slotReleased:
		p.slotReleased = c.group.releaseSlot(c)
	case p.openQuestions == 0 && p.slotReleased:
		p.slotReleased = false
		c.group.reacquireSlot(c, p.isAsync(c))
	}
}

// settle takes the slot of a call that has ended again, for the release that follows.
func (c *child) settle(p *pending) {
	p.slotMu.Lock()
	defer p.slotMu.Unlock()
	p.over = true
	if p.slotReleased {
		p.slotReleased = false
		c.group.reacquireSlot(c, p.isAsync(c))
	}
}

func (p *pending) isAsync(c *child) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.async
}

// failf ends a call; its process gets a cancellation.
func (c *child) failf(p *pending, format string, args ...any) {
	c.stop(p, &tools.ProtocolError{Err: toolError(p.op, p.function+" was stopped: "+format, args...)})
}

// stop ends a call because of its host.
func (c *child) stop(p *pending, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.hostContext()
	p.stop(why)
	if !p.halt {
		p.halt = true
		close(p.halted)
	}
}

// closeHost ends the operations of a call by its host, and waits for them.
func (c *child) closeHost(p *pending) {
	c.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop(nil)
	}
	c.mu.Unlock()
	p.work.Wait()
}
