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

// What happens between the request and the answer: take sorts the messages of the service, wait handles them until
// there is an answer or the call ends, cancel notifies the service of the end.

// maxProgress is how many progress reports of a call may wait; more are dropped.
const maxProgress = 64

// codeParked reports to a service that its turn continues later, in another call.
const codeParked = "parked"

// maxEnds is how many requests may wait for the end of a call; the newest count.
const maxEnds = 8

// callOver is the reply to an operation of a call that has ended.
const callOver = "the call is over"

// conversation is one call under way.
type conversation struct {
	tool   *Tool
	op     string
	output *model.Value            // that the answer has to match; nil accepts any
	host   tools.Host              // nil when the caller has none
	ctx    context.Context         //nolint:containedctx // of the call and its operations
	stop   context.CancelCauseFunc // ends ctx

	reply string // subject to which the service sends
	gone  <-chan struct{}

	progress   chan *nats.Msg // on progress
	operations chan *nats.Msg // other operations of the host
	answer     chan *nats.Msg

	reader operation.Reader
	work   sync.WaitGroup // operations of the host

	mu        sync.Mutex
	over      bool                 // what arrives now is refused
	busy      int                  // operations of the host
	ends      []*nats.Msg          // requests to be answered when the call ends before its answer
	sentCodes map[events.Code]bool // codes of the errors that the host has sent to the service
}

func (c *conversation) open() error {
	c.progress, c.operations, c.answer = make(chan *nats.Msg, maxProgress), make(chan *nats.Msg, operation.MaxOpen), make(chan *nats.Msg, 1)
	var err error
	if c.reply, c.gone, err = c.tool.inbox.add(c.take); err != nil {
		return tools.Retryable(wrap(c.op, events.CodeToolError, "the worker cannot receive answers: nothing was sent", err))
	}
	return nil
}

// close ends the operations that are still open.
func (c *conversation) close() {
	c.tool.inbox.remove(c.reply)
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.stop(nil)
	c.work.Wait()
	for {
		select {
		case m := <-c.operations: // came with the end
			c.refuse(m, events.CodeCancelled, callOver)
		default:
			return
		}
	}
}

// take sorts the messages of the service. It is called by the inbox.
func (c *conversation) take(m *nats.Msg) {
	to := c.operations
	kind := m.Header.Get(target.HeaderKind)
	switch kind {
	case "":
		to = c.answer
	case "progress":
		to = c.progress
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		if to == c.operations {
			c.refuse(m, events.CodeCancelled, callOver)
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
		if to == c.operations {
			c.stop(&tools.ProtocolError{Err: failure(c.op, events.CodeToolError, tooManyOpen())})
		}
	}
}

func tooManyOpen() string {
	return fmt.Sprintf("the service broke the protocol: a call may have %d questions and other operations open", operation.MaxOpen)
}

// wait waits until there is an answer, or there can be none.
func (c *conversation) wait() (tools.Result, error) {
	for {
		select {
		case m := <-c.progress:
			c.relayProgress(m)
		case m := <-c.operations:
			c.operate(m)
		case m := <-c.answer:
			return c.finish(m)
		case <-c.gone:
			return tools.Result{}, tools.Unknown(failure(c.op, events.CodeToolError,
				"the connection was closed after the request was sent: the call may or may not have happened"))
		case <-c.ctx.Done():
			select {
			case m := <-c.answer: // came with the end
				return c.finish(m)
			default:
				return tools.Result{}, c.cancel()
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

// finish reads the answer, after the progress reports that preceded it.
func (c *conversation) finish(m *nats.Msg) (tools.Result, error) {
	for range len(c.progress) { // not until there are none: a service may send them for ever
		c.relayProgress(<-c.progress)
	}
	if errors.Is(context.Cause(c.ctx), tools.ErrParked) { // nothing that a parked call returns is used
		return tools.Result{}, c.ended()
	}
	return c.result(m)
}

// cancel notifies the service that the call has ended, and returns why.
func (c *conversation) cancel() error {
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

// why returns the code by which the service is notified of the end of ctx, and a text for it.
func (c *conversation) why() (code, words string) {
	switch {
	case errors.Is(context.Cause(c.ctx), tools.ErrParked):
		return codeParked, tools.ErrParked.Error()
	case tools.TimedOut(c.ctx):
		return string(events.CodeTimeout), "the call has taken too long"
	}
	return string(events.CodeCancelled), "the call was cancelled"
}

// ended is the error of a call whose context has ended.
func (c *conversation) ended() error {
	return tools.Ended(c.ctx, c.op, "while "+c.tool.name()+" was working")
}
