package natstool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// maxWords is how many words on its progress a call may be behind; more are dropped.
const maxWords = 64

// codeParked is how a service is told that its turn goes on later, in another call.
const codeParked = "parked"

// maxEnds is how many requests may wait for the end of a call; the newest count.
const maxEnds = 8

// overNow is what is said to who asks something for a call that has ended.
const overNow = "the call is over"

// conversation is one call under way.
type conversation struct {
	tool   *Tool
	op     string
	output *model.Value            // what the answer has to fit; nil takes any
	desk   tools.Host              // nil when the caller has none
	ctx    context.Context         //nolint:containedctx // all that the service asks for the call belongs to it
	stop   context.CancelCauseFunc // ends ctx

	reply string // subject on which the service talks
	gone  <-chan struct{}

	words  chan *nats.Msg // on progress
	asks   chan *nats.Msg // other operations at the desk
	answer chan *nats.Msg

	reader operation.Reader
	work   sync.WaitGroup // operations at the desk

	mu   sync.Mutex
	over bool                 // nobody takes what comes now
	busy int                  // operations at the desk
	ends []*nats.Msg          // requests to be answered when the call ends before its answer
	told map[events.Code]bool // codes of the errors that the desk has given the service
}

func (c *conversation) open() error {
	c.words, c.asks, c.answer = make(chan *nats.Msg, maxWords), make(chan *nats.Msg, operation.MaxOpen), make(chan *nats.Msg, 1)
	var err error
	if c.reply, c.gone, err = c.tool.inbox.add(c.take); err != nil {
		return tools.Retryable(wrap(c.op, events.CodeToolError, "the worker cannot receive answers: nothing was sent", err))
	}
	return nil
}

// close ends all that the service still wants.
func (c *conversation) close() {
	c.tool.inbox.remove(c.reply)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.stop(nil)
	c.work.Wait()
	for {
		select {
		case m := <-c.asks: // came with the end
			c.refuse(m, events.CodeCancelled, overNow)
		default:
			return
		}
	}
}

// take sorts what the service says. It is called by the inbox.
func (c *conversation) take(m *nats.Msg) {
	to := c.asks
	kind := m.Header.Get(target.HeaderKind)
	switch kind {
	case "":
		to = c.answer
	case "progress":
		to = c.words
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		if to == c.asks {
			c.refuse(m, events.CodeCancelled, overNow)
		}
		return
	}
	if kind == "end" {
		c.end(m)
		return
	}
	select {
	case to <- m:
	default:
		if to == c.asks {
			c.stop(fault{failure(c.op, events.CodeToolError, tooManyOpen())})
		}
	}
}

func tooManyOpen() string {
	return fmt.Sprintf("the service broke the protocol: a call may have %d questions and other operations open", operation.MaxOpen)
}

// wait goes on until there is an answer, or there can be none.
func (c *conversation) wait() (tools.Result, error) {
	for {
		select {
		case m := <-c.words:
			c.say(m)
		case m := <-c.asks:
			c.operate(m)
		case m := <-c.answer:
			return c.finish(m)
		case <-c.gone:
			return tools.Result{}, failure(c.op, events.CodeToolError,
				"the connection was closed after the request was sent: the call may or may not have happened")
		case <-c.ctx.Done():
			select {
			case m := <-c.answer: // came with the end
				return c.finish(m)
			default:
				return tools.Result{}, c.giveUp()
			}
		}
	}
}

// end keeps a request that is to be answered when the call ends before its answer. A service may
// ask again and again, to see that the worker is still there.
func (c *conversation) end(m *nats.Msg) {
	if len(c.ends) == maxEnds {
		c.ends = c.ends[1:]
	}
	c.ends = append(c.ends, m)
}

// finish reads the answer, after all that was said before it.
func (c *conversation) finish(m *nats.Msg) (tools.Result, error) {
	for range len(c.words) { // not until there are none: a service may go on for ever
		c.say(<-c.words)
	}
	if errors.Is(context.Cause(c.ctx), tools.ErrParked) { // nothing that a parked call returns is used
		return tools.Result{}, c.ended()
	}
	return c.result(m)
}

// giveUp tells the service that nobody waits any more, and returns why.
func (c *conversation) giveUp() error {
	c.mu.Lock()
	ends := c.ends
	c.ends, c.over = nil, true
	c.mu.Unlock()
	code, words := c.why()
	for _, m := range ends {
		c.refuse(m, events.Code(code), words)
	}
	return c.ended()
}

// fault ends a call whose service does not keep to the protocol, or whose desk is out of order.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// why returns the code by which the service is told of the end of ctx, and words for it.
func (c *conversation) why() (code, words string) {
	cause := context.Cause(c.ctx)
	switch {
	case errors.Is(cause, tools.ErrParked):
		return codeParked, tools.ErrParked.Error()
	case errors.Is(cause, context.DeadlineExceeded), errors.Is(cause, events.ErrTimeout):
		return string(events.CodeTimeout), "the call has taken too long"
	}
	return string(events.CodeCancelled), "the call was cancelled"
}

// ended is the error of a call whose context has ended.
func (c *conversation) ended() error {
	cause := context.Cause(c.ctx)
	var broken fault
	if errors.As(cause, &broken) {
		return broken.error
	}
	switch code, _ := c.why(); code {
	case codeParked:
		return fmt.Errorf("%s: %w", c.op, tools.ErrParked)
	case string(events.CodeTimeout):
		return wrap(c.op, events.CodeTimeout, "timeout while "+c.tool.name()+" was working", cause)
	}
	return wrap(c.op, events.CodeCancelled, "cancelled while "+c.tool.name()+" was working", cause)
}
