package oneturn

// The client: what it publishes. await.go waits for responses, questions.go answers questions, blob.go fetches
// large payloads. All requests to workers go through Client.ask below.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/traceparent"
	"github.com/oneturn/oneturn/internal/worker"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// ClientOptions configure a [Client]. The zero value is usable.
type ClientOptions struct {
	// Prefix of all names on NATS. Defaults to "oneturn".
	Prefix string
	// Pool of workers that turns go to. Defaults to "default".
	Pool string
	// WithoutMsgID omits the Nats-Msg-Id, by which the server drops a repeated publish within a second.
	// Duplicates are then found by the workers alone.
	WithoutMsgID bool
	// OnNoWorker is called when no worker has replied for a turn that is waited for, once per wait, after
	// NoWorkerAfter (3 s by default).
	OnNoWorker    func(TurnID)
	NoWorkerAfter time.Duration
	// OnUnclaimed is called when workers reply and none has claimed a turn that is waited for, once per
	// wait, after NoWorkerAfter: none serves its workflow, or all are busy.
	OnUnclaimed func(TurnID)
	// OnQuestion is called for each open question of a turn that is waited for, also of the steps of a program, once per wait
	// and question, in order, by the goroutine that waits.
	OnQuestion func(*api.Question)
	// AnswerWait bounds how long Answer waits for the result. Defaults to 10 s.
	AnswerWait time.Duration
}

// Client publishes turns and waits for their responses. What it publishes has the OpenTelemetry span of the context, if there is
// one, as its traceparent. It is safe for concurrent use.
type Client struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	space subjects.Space
	o     ClientOptions
}

// NewClient returns a client on a connection.
func NewClient(nc *nats.Conn, o ClientOptions) (*Client, error) {
	if nc == nil {
		return nil, worker.ErrNoConnection
	}
	o.Prefix = cmp.Or(o.Prefix, subjects.DefaultPrefix)
	o.Pool = cmp.Or(o.Pool, subjects.DefaultPool)
	o.NoWorkerAfter = cmp.Or(o.NoWorkerAfter, 3*time.Second)
	o.AnswerWait = cmp.Or(o.AnswerWait, 10*time.Second)
	if err := subjects.CheckPool(o.Pool); err != nil {
		return nil, err
	}
	space, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("oneturn client: %w", err)
	}
	return &Client{nc: nc, js: js, space: space, o: o}, nil
}

// Receipt confirms that the inbound stream has stored a message. From then on the turn ends in exactly one
// response.
type Receipt struct {
	Sequence  uint64 // in the inbound stream
	Duplicate bool   // the same message was stored just before, within a second
}

// ErrNotAcknowledged means that a message was published, and that its outcome is unknown: the acknowledgement of the stream has not
// arrived. Publishing it again is harmless.
var ErrNotAcknowledged = deliver.ErrNotAcknowledged

// Publish sends a turn to the workers. Publishing a turn again is harmless.
//
// It waits until the inbound stream has acknowledged the turn, or ctx ends; without a deadline for 15 s. If no acknowledgement arrives
// within 3 s, later within up to 12 s, it publishes the turn again, as it waits for a new connection if there is none. So the turn may be
// stored more than once; it runs once all the same. A refusal is returned immediately. An error matches [ErrNotAcknowledged] if the turn
// may be stored. All publishing methods of the client wait in this way.
func (c *Client) Publish(ctx context.Context, t *Turn) (Receipt, error) {
	if err := t.check(); err != nil {
		return Receipt{}, fmt.Errorf("publish turn %.80q: %w", t.Turn, err)
	}
	e, err := t.event()
	if err != nil {
		return Receipt{}, err
	}
	body, err := events.EncodeTurn(e, time.Now())
	if err != nil {
		return Receipt{}, fmt.Errorf("publish turn %.80q: %w", t.Turn, err)
	}
	return c.publish(ctx, message{kind: events.KindStructuredOutputReady, id: t.TurnID, workflow: e.Workflow, body: body, msgID: c.msgID(e), depth: max(t.Depth, depth(ctx))})
}

// msgID is the Nats-Msg-Id of a turn. It differs by pool: a message that waits in a pool without
// workers must not make the server drop the one that is published to the right pool.
func (c *Client) msgID(e *events.StructuredOutputReady) string {
	return c.inPool(events.MsgID(e.InboundKind(), e.TurnID, events.Fingerprint(e)))
}

// inPool is a Nats-Msg-Id that differs by pool.
func (c *Client) inPool(msgID string) string {
	if c.o.Pool != subjects.DefaultPool {
		msgID += "." + c.o.Pool
	}
	return msgID
}

// PublishRaw sends the bytes of a structured_output_ready or plan_ready event to the workers unchanged, bare or in an
// envelope. It decodes them only to find the subject.
func (c *Client) PublishRaw(ctx context.Context, body []byte) (*Turn, Receipt, error) {
	e, err := events.DecodeTurn(body)
	if err != nil {
		return nil, Receipt{}, err
	}
	t := turnOf(e)
	r, err := c.publish(ctx, message{kind: e.InboundKind(), id: t.TurnID, workflow: t.Workflow, body: body, msgID: c.msgID(e), depth: depth(ctx)})
	return t, r, err
}

// Cancel requests the end of a turn. A response that is stored already stays.
func (c *Client) Cancel(ctx context.Context, cancel *Cancel) (Receipt, error) {
	if err := cancel.check(); err != nil && (cancel.ToolCallID == "" || cancel.Chat == "") {
		return Receipt{}, fmt.Errorf("cancel turn %.80q: %w", cancel.Turn, err)
	}
	body, err := events.EncodeCancel(&events.Cancel{
		TurnID: events.TurnID(cancel.TurnID), Workflow: cancel.Workflow, Reason: cancel.Reason, UserID: cancel.UserID, ToolCallID: cancel.ToolCallID,
	}, time.Now())
	if err != nil {
		return Receipt{}, fmt.Errorf("cancel turn %.80q: %w", cancel.Turn, err)
	}
	return c.publish(ctx, message{kind: events.KindCancel, id: cancel.TurnID, workflow: cancel.Workflow, body: body})
}

// message is what a client publishes.
type message struct {
	kind     string
	id       TurnID
	workflow string
	body     []byte
	msgID    string // "" for none
	depth    int    // of a turn, 0 for none
}

// depth returns how many programs the tool call is in that ctx belongs to; 0 outside a tool.
func depth(ctx context.Context) int { return tool.Info(ctx).Depth }

func (c *Client) publish(ctx context.Context, p message) (Receipt, error) {
	m := &nats.Msg{Subject: c.space.In(c.o.Pool, p.kind, tenant(p.id.App), p.workflow, p.id.Chat), Data: p.body, Header: nats.Header{}}
	if p.msgID != "" && !c.o.WithoutMsgID {
		m.Header[nats.MsgIdHdr] = []string{p.msgID}
	}
	if p.depth > 0 {
		m.Header[subjects.HeaderDepth] = []string{strconv.Itoa(p.depth)}
	}
	if trace := traceparent.From(ctx); trace != "" {
		m.Header[traceparent.Header] = []string{trace}
	}
	ack, err := deliver.Publish(ctx, c.js, m)
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return Receipt{}, fmt.Errorf("publish to %s: no stream stores it: start a worker with its embedded server, or run `turnctl provision`: %w", m.Subject, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return Receipt{}, fmt.Errorf("publish to %s: the event has %d bytes, the server takes %d: store the data elsewhere and send a reference, or raise max_payload of the server: %w",
			m.Subject, len(m.Data), c.nc.MaxPayload(), err)
	case err != nil:
		return Receipt{}, fmt.Errorf("publish to %s: %w", m.Subject, err)
	}
	return Receipt{Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
}

// errAPI means that a worker has replied to a request with an error.
var errAPI = errors.New("request API")

// ErrNoWorker means that no worker serves the request API, so none was running when the request was made. It
// matches [nats.ErrNoResponders] as well. What was published stays stored until a worker runs.
var ErrNoWorker = errors.New("no worker answers")

// requestTimeout bounds one request.
const requestTimeout = 5 * time.Second

// request requests JSON from the request API.
func request[T any](ctx context.Context, c *Client, app, verb string, q any) (*T, error) {
	m, err := c.ask(ctx, app, verb, q)
	if err != nil {
		return nil, err
	}
	var answer T
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("request API: %w", err)
	}
	return &answer, nil
}

// ask sends a request to the request API and returns the reply.
func (c *Client) ask(ctx context.Context, app, verb string, q any) (*nats.Msg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	subject := c.space.API(app, verb)
	m, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w on %s: start one with: worker --workflows DIR --nats %s: %w", ErrNoWorker, subject, c.nc.ConnectedUrlRedacted(), err)
	case errors.Is(err, context.DeadlineExceeded): // the worker that had it may have died
		return nil, fmt.Errorf("request API: no worker has replied in time, try again: %w", err)
	case err != nil:
		return nil, fmt.Errorf("request API: %w", err)
	}
	if text := m.Header.Get(micro.ErrorHeader); text != "" {
		return nil, fmt.Errorf("%w: %s", errAPI, text)
	}
	return m, nil
}
