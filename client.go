package oneturn

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Turn is what a producer publishes: an agent has finished with JSON that calls for a tool.
// For publishing, Data and ContextVariables may be any values that encoding/json can write.
type Turn = events.StructuredOutputReady

// TurnID is the identity of a turn: tenant, chat, run, turn key.
type TurnID = events.TurnID

// Response is the end of a turn.
type Response = events.ToolResponse

// ClientOptions configure a [Client]. The zero value is usable.
type ClientOptions struct {
	// Prefix of all names on NATS. Defaults to "oneturn".
	Prefix string
	// Pool of workers that turns go to. Defaults to "default".
	Pool string
	// WithoutMsgID leaves out the Nats-Msg-Id, by which the server drops a repeated publish
	// within a second. Duplicates are then found by the workers alone.
	WithoutMsgID bool
	// OnNoWorker is called when nobody has answered for a turn that is waited for, once a
	// wait, after NoWorkerAfter (3 s by default).
	OnNoWorker    func(TurnID)
	NoWorkerAfter time.Duration
	// OnUnclaimed is called when workers answer and none has claimed a turn that is waited for, once
	// a wait, after NoWorkerAfter: none serves its workflow, or all are busy.
	OnUnclaimed func(TurnID)
	// OnQuestion is called for each open question of a turn that is waited for, once a wait and
	// a question, in order, by the goroutine that waits.
	OnQuestion func(*Wait)
	// AnswerWait bounds how long Answer waits for the verdict. Defaults to 10 s.
	AnswerWait time.Duration
}

// Client publishes turns and waits for their responses. It is safe for concurrent use.
type Client struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	space subjects.Space
	o     ClientOptions
}

// NewClient returns a client on a connection.
func NewClient(nc *nats.Conn, o ClientOptions) (*Client, error) {
	if nc == nil {
		return nil, errNoConnection
	}
	def(&o.Prefix, subjects.DefaultPrefix)
	def(&o.Pool, subjects.DefaultPool)
	def(&o.NoWorkerAfter, 3*time.Second)
	def(&o.AnswerWait, 10*time.Second)
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

var errNoConnection = errors.New("oneturn: no NATS connection: make one with nats.Connect")

// Receipt says that the inbound stream has stored a message. From then on the turn ends in
// exactly one response.
type Receipt struct {
	Sequence  uint64 // in the inbound stream
	Duplicate bool   // the same message was stored just before, within a second
}

// Publish hands a turn to the workers. Publishing a turn again is harmless.
func (c *Client) Publish(ctx context.Context, t *Turn) (Receipt, error) {
	t, err := plain(t)
	if err != nil {
		return Receipt{}, err
	}
	body, err := events.EncodeTurn(t, time.Now())
	if err != nil {
		return Receipt{}, fmt.Errorf("publish turn %.80q: %w", t.Turn, err)
	}
	return c.publish(ctx, events.KindStructuredOutputReady, t.TurnID, t.Workflow, body, c.msgID(t))
}

// msgID is the Nats-Msg-Id of a turn. It differs by pool: a message that waits in a pool without
// workers must not make the server drop the one that is published to the right pool.
func (c *Client) msgID(t *Turn) string {
	id := events.MsgID(events.KindStructuredOutputReady, t.TurnID, events.Fingerprint(t))
	if c.o.Pool != subjects.DefaultPool {
		id += "." + c.o.Pool
	}
	return id
}

// plain returns a copy of a turn whose data is what a worker will decode: any Go value is
// taken as encoding/json writes it.
func plain(t *Turn) (*Turn, error) {
	copied := *t
	copied.AutoToolMode = true
	copied.Workflow, copied.Agent, copied.Model = events.Name(t.Workflow), events.Name(t.Agent), events.Name(t.Model)
	var err error
	if copied.Data, err = tree(t.Data); err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its data has no JSON form: %w", t.Turn, err)
	}
	if t.ContextVariables == nil {
		return &copied, nil
	}
	vars, err := tree(t.ContextVariables)
	if err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its context variables have no JSON form: %w", t.Turn, err)
	}
	copied.ContextVariables, _ = vars.(map[string]any)
	return &copied, nil
}

func tree(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it was
	}
	return events.Decode(data)
}

// PublishRaw hands the bytes of a structured_output_ready event to the workers as they are,
// bare or in an envelope. It decodes them only to know where they belong.
func (c *Client) PublishRaw(ctx context.Context, body []byte) (*Turn, Receipt, error) {
	t, err := events.DecodeTurn(body)
	if err != nil {
		return nil, Receipt{}, err
	}
	r, err := c.publish(ctx, events.KindStructuredOutputReady, t.TurnID, t.Workflow, body, c.msgID(t))
	return t, r, err
}

// Cancel asks for the end of a turn. A response that is stored already stays.
func (c *Client) Cancel(ctx context.Context, cancel *events.Cancel) (Receipt, error) {
	body, err := events.EncodeCancel(cancel, time.Now())
	if err != nil {
		return Receipt{}, fmt.Errorf("cancel turn %.80q: %w", cancel.Turn, err)
	}
	return c.publish(ctx, events.KindCancel, cancel.TurnID, cancel.Workflow, body, "")
}

func (c *Client) publish(ctx context.Context, kind string, id TurnID, workflow string, body []byte, msgID string) (Receipt, error) {
	m := &nats.Msg{Subject: c.space.In(c.o.Pool, kind, tenant(id), workflow, id.Chat), Data: body}
	if msgID != "" && !c.o.WithoutMsgID {
		m.Header = nats.Header{nats.MsgIdHdr: {msgID}}
	}
	ack, err := c.js.PublishMsg(ctx, m)
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return Receipt{}, fmt.Errorf("publish to %s: no stream takes it: start a worker with its embedded server, or run `turnctl provision`: %w", m.Subject, err)
	case err != nil:
		return Receipt{}, fmt.Errorf("publish to %s: %w", m.Subject, err)
	}
	return Receipt{Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
}

func tenant(id TurnID) string {
	if id.App == "" {
		return events.DefaultApp
	}
	return id.App
}

// rereadEvery is how often a wait looks into the journal: live copies can be lost.
const rereadEvery = 5 * time.Second

// ErrConflict says that the turn's key was used before in its chat with other data: the
// turn that was published is never run, unless its workflow says `on_key_reuse: run`, and the
// response belongs to the earlier data.
var ErrConflict = errors.New("the turn key was used before with other data")

// AwaitTurn waits like [Client.Await] for the response of a turn that was published with this
// data, and fails with [ErrConflict] when there is only a response that answers other data.
func (c *Client) AwaitTurn(ctx context.Context, t *Turn) (*Response, error) {
	t, err := plain(t)
	if err != nil {
		return nil, err
	}
	sum := events.Fingerprint(t)
	return c.await(ctx, t.TurnID, hex.EncodeToString(sum[:]))
}

// Await waits for the response of a turn until ctx ends. It listens to the live copies and
// reads the journal at the start, after each reconnect, when it was too slow, and every 5 s.
func (c *Client) Await(ctx context.Context, id TurnID) (*Response, error) {
	return c.await(ctx, id, "")
}

// ending is a response as it was stored.
type ending struct {
	event       []byte
	fingerprint string
}

func (c *Client) await(ctx context.Context, id TurnID, fingerprint string) (*Response, error) {
	fail := func(err error) (*Response, error) {
		return nil, fmt.Errorf("await turn %.80q of chat %.80q: %w", id.Turn, id.Chat, err)
	}
	key := subjects.TurnKey(tenant(id), id.Chat, id.Run, id.Turn)
	live := make(chan ending, 1)
	sub, err := c.nc.Subscribe(c.space.EventOfTurn(key, events.KindToolResponse), func(m *nats.Msg) {
		select {
		case live <- ending{m.Data, m.Header.Get(idempotency.HeaderFingerprint)}:
		default: // one is enough
		}
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	asks, err := c.listen(key)
	if err != nil {
		return fail(err)
	}
	defer asks.stop()
	status := c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(status)
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	missing := c.missing(id)
	defer missing.stop()
	claim := claimWatch{on: c.o.OnUnclaimed, due: time.Now().Add(c.o.NoWorkerAfter)}
	for {
		end, known, err := c.ended(ctx, id, fingerprint, asks)
		missing.saw(err)
		claim.saw(id, known, err)
		again := tick.C
		if err != nil || claim.pending() { // ask again soon
			again = time.After(min(rereadEvery, c.o.NoWorkerAfter/3))
		}
		if end == nil {
			select {
			case e := <-live:
				end = &e
			case s := <-status:
				if s == nats.CLOSED {
					return fail(nats.ErrConnectionClosed)
				}
			case <-again:
			case <-asks.asked:
			case <-ctx.Done():
				return fail(context.Cause(ctx))
			}
		}
		if end == nil {
			continue
		}
		if fingerprint != "" && end.fingerprint != "" && end.fingerprint != fingerprint {
			return fail(ErrConflict)
		}
		said, err := parseResponse(end.event)
		if err != nil {
			return fail(corrupt(err))
		}
		return said, nil
	}
}

// corrupt is the error of a turn whose end is stored and cannot be read.
func corrupt(cause error) error {
	return &events.Error{
		Code: events.CodeStateCorrupt, Op: "read the response", Err: cause,
		Msg: "the turn has ended, and its response in the journal is damaged: turnctl show tells what is there",
	}
}

// Do publishes a turn and waits for its response.
func (c *Client) Do(ctx context.Context, t *Turn) (*Response, error) {
	if _, err := c.Publish(ctx, t); err != nil {
		return nil, err
	}
	return c.AwaitTurn(ctx, t)
}

// ended asks the workers' request API for the response of a turn, of two under one key for that
// which answers the data with the fingerprint, if one is given; nil when it has none yet. Asks
// sees what else is there. Known says that the turn has records at all.
func (c *Client) ended(ctx context.Context, id TurnID, fingerprint string, asks *questions) (end *ending, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	q := TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn, Fingerprint: fingerprint}
	var first *ending
	called := false  // a response without a claim is left of a turn that the journal has forgotten
	claimed := false // with this data, under a key of its own
	for {
		page, err := request[Page](ctx, c, tenant(id), VerbTurn, q)
		if err != nil {
			return nil, known, err
		}
		known = known || len(page.Records) > 0
		asks.saw(page.Records)
		for _, r := range page.Records {
			switch {
			case r.Kind == events.KindToolCall:
				called, claimed = true, claimed || r.Fingerprint == fingerprint
			case r.Kind != events.KindToolResponse:
			case fingerprint == "", called && r.Fingerprint == fingerprint:
				return &ending{r.Event, r.Fingerprint}, true, nil
			case called && first == nil:
				first = &ending{r.Event, r.Fingerprint}
			}
		}
		switch {
		case page.Next > q.From:
		case claimed || first == nil:
			asks.tell()
			return nil, known, nil
		default:
			return first, known, nil
		}
		q.From = page.Next
	}
}

// errAPI says that a worker has answered a request with an error.
var errAPI = errors.New("request API")

func parseResponse(body []byte) (*Response, error) {
	m, err := events.Parse(body)
	if err != nil {
		return nil, err
	}
	if m.Kind != events.KindToolResponse {
		return nil, fmt.Errorf("it is of kind %.80q", m.Kind)
	}
	var r Response
	if err := m.As(&r); err != nil {
		return nil, err
	}
	return &r, nil
}
