package natstool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/singleflight"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A call from its arguments to the published request: Invoke resolves the endpoint, opens a conversation, sends,
// and waits (conversation.go). Close waits for the calls that are under way.

// Defaults of [Options].
const (
	DefaultMaxAnswer = 10 << 20
	DefaultFresh     = time.Minute
)

// Options of a [Tool].
type Options struct {
	Conn   *nats.Conn   // required; it stays the caller's to close
	Logger *slog.Logger // nil logs nothing
	// MaxAnswer bounds an answer in bytes. Defaults to DefaultMaxAnswer. The server's max_payload
	// bounds it too.
	MaxAnswer int
	// Fresh is how old what was discovered may get before it is asked for again. Defaults to
	// DefaultFresh.
	Fresh time.Duration
	// Reserved are prefixes of subjects where no tool may be, besides the subjects of the server itself.
	// Defaults to "oneturn".
	Reserved []string
	// MayReply reports whether a message of the service may be replied to on a subject that the
	// service names: with the rights of Conn it could reach what the service cannot. Nil takes
	// inboxes only, see [subjects.Space.MayReply].
	MayReply func(subject string) bool
	// Subjects where services were found. Defaults to one of this tool alone, which forgets them
	// when the tool is closed.
	Subjects *Subjects
}

// Tool calls one endpoint. It implements [tools.Describer] and [tools.Closer] and is safe for
// concurrent use.
type Tool struct {
	t     target.NATS
	o     Options
	inbox inbox

	endpointSeen atomic.Pointer[endpoint]
	next         atomic.Int64 // when it may be asked again what is called, in Unix nanoseconds
	gone         atomic.Bool  // no responder was at the subject that was e
	discovering  singleflight.Group

	differing string // what instances named when they differed last; only the asking uses it

	ctx context.Context //nolint:containedctx // of the tool's background work
	end context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

var (
	_ tools.Describer = (*Tool)(nil)
	_ tools.Closer    = (*Tool)(nil)
)

// New makes the tool. It does no I/O: the endpoint need not exist yet.
func New(t *target.NATS, o Options) *Tool {
	o.MaxAnswer = cmp.Or(o.MaxAnswer, DefaultMaxAnswer)
	o.Fresh = cmp.Or(o.Fresh, DefaultFresh)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Reserved == nil {
		o.Reserved = []string{"oneturn"}
	}
	if o.MayReply == nil {
		o.MayReply = mayReply
	}
	if o.Subjects == nil {
		o.Subjects = &Subjects{}
	}
	tool := &Tool{t: *t, o: o}
	tool.inbox.mayReply = o.MayReply
	tool.inbox.conn = o.Conn
	tool.ctx, tool.end = context.WithCancel(context.Background())
	return tool
}

// begin records active work; it reports false once the tool is closed.
func (t *Tool) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.running.Add(1)
	}
	return !t.closed
}

// Close implements [tools.Closer].
func (t *Tool) Close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("close NATS tool %s: calls are under way: %w", t.name(), context.Cause(ctx))
	}
	t.end() // ends what is still under way
	<-done
	t.inbox.close()
	return err
}

// name is what messages call the endpoint.
func (t *Tool) name() string {
	switch {
	case t.t.Service == "":
		return t.t.Subject
	case t.t.Endpoint == "":
		return t.t.Service
	}
	return t.t.Service + "/" + t.t.Endpoint
}

// Invoke implements [tools.Invoker].
func (t *Tool) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	op := "call " + call.Name
	if !t.begin() {
		return tools.Result{}, failure(op, events.CodeToolError, "the tool is closed: its worker stops")
	}
	defer t.running.Done()
	e, err := t.endpoint(ctx, op)
	if err != nil {
		return tools.Result{}, err
	}
	args, err := call.ArgsFor(op, e.input)
	if err != nil {
		return tools.Result{}, err
	}
	if t.o.Conn.Status() != nats.CONNECTED { // what is sent now would wait in a buffer, and arrive at any time
		return tools.Result{}, tools.Retryable(failure(op, events.CodeToolError, "the worker has no connection to NATS: nothing was sent"))
	}
	if ctx.Err() != nil {
		return tools.Result{}, (&conversation{tool: t, op: op, ctx: ctx}).ended()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(t.ctx, func() { stop(context.Cause(t.ctx)) })()
	c := &conversation{tool: t, op: op, output: e.output, host: call.Host, ctx: ctx, stop: stop}
	if err := c.open(); err != nil {
		return tools.Result{}, err
	}
	defer c.close()
	if err := c.send(e.subject, call, args); err != nil {
		return tools.Result{}, err
	}
	return c.wait()
}

// send publishes the request. Its errors are certain: nothing was sent.
func (c *conversation) send(subject string, call *tools.Call, args json.RawMessage) error {
	m := &nats.Msg{Subject: subject, Reply: c.reply, Data: args, Header: nats.Header{}}
	for _, h := range target.Identity(call) {
		m.Header[h.Name] = []string{h.Value}
	}
	if timeout, ok := target.Timeout(c.ctx); ok {
		m.Header[target.HeaderTimeout] = []string{timeout}
	}
	err := c.tool.o.Conn.PublishMsg(m)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return wrap(c.op, events.CodeTooLarge, fmt.Sprintf("the request has %d bytes, which is more than the server's max_payload", len(args)), err)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining), errors.Is(err, nats.ErrConnectionReconnecting),
		errors.Is(err, nats.ErrReconnectBufExceeded):
		return tools.Retryable(wrap(c.op, events.CodeToolError, "the worker has no connection to NATS: nothing was sent", err))
	default:
		return wrap(c.op, events.CodeToolError, "the request cannot be sent", err)
	}
}

func failure(op string, code events.Code, msg string) error { return wrap(op, code, msg, nil) }

func wrap(op string, code events.Code, msg string, err error) error {
	return &events.Error{Code: code, Op: op, Msg: msg, Err: err}
}
