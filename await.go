package oneturn

// A wait for a response listens to the live copy of the response and reads the turn from the workers' request
// API (package api), since live copies can be lost. One read also shows whether a worker answers, whether the
// turn is claimed and which questions are open, and the wait reports each of them once.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// rereadEvery is how often a wait reads the journal: live copies can be lost.
const rereadEvery = 5 * time.Second

// ErrConflict means that the turn's key was used before in its chat with other data: the turn that was
// published is never run, unless its workflow has `on_key_reuse: run`, and the response belongs to the
// earlier data.
var ErrConflict = errors.New("the turn key was used before with other data")

// AwaitTurn waits like [Client.Await] for the response of a turn that was published with this
// data, and fails with [ErrConflict] when there is only a response that answers other data.
func (c *Client) AwaitTurn(ctx context.Context, t *Turn) (*Response, error) {
	e, err := t.event()
	if err != nil {
		return nil, err
	}
	sum := events.Fingerprint(e)
	return c.await(ctx, t.TurnID, hex.EncodeToString(sum[:]))
}

// Await waits for the response of a turn until ctx ends. It listens to the live copies and
// reads the journal at the start, after each reconnect, when it was too slow, and every 5 s.
//
// It continues to wait when no worker runs, or none claims the turn: [ClientOptions].OnNoWorker and OnUnclaimed are called
// then. After a deadline of ctx the error states what is missing, and matches [ErrNoWorker] if no worker answered.
func (c *Client) Await(ctx context.Context, id TurnID) (*Response, error) {
	if err := id.check(); err != nil {
		return nil, fmt.Errorf("await a turn: %w", err)
	}
	return c.await(ctx, id, "")
}

// ending is a response as it was stored.
type ending struct {
	event       []byte
	fingerprint string
}

// ofOther reports whether the response belongs to other data than that with a fingerprint, "" for any.
func (e *ending) ofOther(fingerprint string) bool {
	return fingerprint != "" && e.fingerprint != "" && e.fingerprint != fingerprint
}

func (c *Client) await(ctx context.Context, id TurnID, fingerprint string) (*Response, error) {
	fail := func(err error) (*Response, error) {
		return nil, fmt.Errorf("await turn %.80q of chat %.80q: %w", id.Turn, id.Chat, err)
	}
	key := subjects.TurnKey(tenant(id.App), id.Chat, id.Run, id.Turn)
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
	asks, err := c.watchQuestions(key)
	if err != nil {
		return fail(err)
	}
	defer asks.stop()
	status := c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(status)
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	workers := c.watchWorkers(id)
	defer workers.stop()
	claim := claimWatch{on: c.o.OnUnclaimed, deadline: time.Now().Add(c.o.NoWorkerAfter)}
	missing := errNotRead
	for {
		end, known, err := c.ended(ctx, id, fingerprint, asks)
		if ctx.Err() == nil {
			missing = c.missing(id, known, err)
		}
		workers.saw(err)
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
			case <-asks.changed:
			case <-ctx.Done():
				if errors.Is(ctx.Err(), context.DeadlineExceeded) {
					return fail(fmt.Errorf("%w: %w", context.Cause(ctx), missing))
				}
				return fail(context.Cause(ctx))
			}
		}
		if end == nil {
			continue
		}
		if end.ofOther(fingerprint) {
			return fail(ErrConflict)
		}
		response, err := parseResponse(end.event)
		if err != nil {
			return fail(corrupt(err))
		}
		return response, nil
	}
}

// errNotRead is why a turn has no response after a deadline that was shorter than one request.
var errNotRead = errors.New("no worker has replied yet: check that one runs (turnctl doctor)")

// missing is why a turn has no response yet, from a read of it.
func (c *Client) missing(id TurnID, known bool, err error) error {
	switch {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("no worker has claimed the turn: check that it was published, that pool %s has workers (turnctl doctor) and that one of them "+
			"serves its workflow; or all are busy", c.o.Pool)
	default:
		return fmt.Errorf("the turn is claimed, and its tool runs or waits for an answer: see turnctl show %.80q %.80q", id.Chat, id.Turn)
	}
}

// corrupt is the error of a turn whose end is stored and cannot be read.
func corrupt(cause error) error {
	return &events.Error{
		Code: events.CodeStateCorrupt, Op: "read the response", Err: cause,
		Msg: "the turn has ended, and its response in the journal is damaged: see turnctl show",
	}
}

// Do publishes a turn and waits for its response.
func (c *Client) Do(ctx context.Context, t *Turn) (*Response, error) {
	if _, err := c.Publish(ctx, t); err != nil {
		return nil, err
	}
	return c.AwaitTurn(ctx, t)
}

// ended requests the response of a turn from the workers, of two under one key the one to the data with the
// fingerprint, if one is given; nil when there is none yet. Asks reads the other records. Known reports
// whether the turn has records at all.
func (c *Client) ended(ctx context.Context, id TurnID, fingerprint string, asks *questionWatch) (end *ending, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	q := api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn, Fingerprint: fingerprint}
	var first *ending
	called := false  // a response without a claim is left of a turn that the journal has forgotten
	claimed := false // with this data, under a separate key
	for {
		page, err := request[api.Page](ctx, c, tenant(id.App), api.VerbTurn, q)
		if err != nil {
			return nil, known, err
		}
		known = known || len(page.Records) > 0
		asks.read(page.Records)
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
			asks.notify()
			return nil, known, nil
		default:
			return first, known, nil
		}
		q.From = page.Next
	}
}

// workerWatch reports once that no worker has served the request API for a while.
type workerWatch struct {
	mu    sync.Mutex
	timer *time.Timer
}

func (c *Client) watchWorkers(id TurnID) *workerWatch {
	m := &workerWatch{}
	if c.o.OnNoWorker != nil {
		m.timer = time.AfterFunc(c.o.NoWorkerAfter, func() { c.o.OnNoWorker(id) })
	}
	return m
}

// saw records the outcome of a request: any reply means that a worker runs.
func (m *workerWatch) saw(err error) {
	if err == nil || errors.Is(err, errAPI) {
		m.stop()
	}
}

func (m *workerWatch) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
}

// claimWatch reports once that a turn has no record at its deadline. Only a read from the journal
// decides that, so the wait reads more often until then.
type claimWatch struct {
	on       func(TurnID) // nil once it was called, or the turn has records
	deadline time.Time
}

// pending reports whether it is still open if the turn will be claimed in time.
func (c *claimWatch) pending() bool { return c.on != nil }

// saw records a read of the turn.
func (c *claimWatch) saw(id TurnID, known bool, err error) {
	switch {
	case c.on == nil || err != nil && !known:
	case known:
		c.on = nil
	case !time.Now().Before(c.deadline):
		c.on(id)
		c.on = nil
	}
}
