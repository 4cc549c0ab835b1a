package oneturn

// A wait for a message reads its records from the workers' request API, like the wait for a turn in await.go, and waits for the
// response of its turn with that one. Live copies only trigger the next read.

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

// ErrMessageConflict means that the id of the message was used before in its chat with other content: the message that was
// published changes nothing, and the stored text is the earlier one.
var ErrMessageConflict = errors.New("the id of the message was used before with other content: use a separate id for each message")

// MessageOutcome is what follows from a message, as it is stored.
type MessageOutcome struct {
	Text     *events.Text             // what readers of the chat see, and what was found in the content
	Response *Response                // of the turn that the message has made, or of its last correction; nil if it has none
	Output   *events.StructuredOutput // of an agent with a model and without an automatic tool, else nil
	Updates  []events.ContextUpdate   // of the context variables, in the order of the manifest
	Handoff  *events.Handoff          // the next speaker, nil if the workflow has no handoff rules
}

// AwaitMessage waits until all that follows from a message is stored: its text, the response of its turn or its structured output,
// and the next speaker. It waits like [Client.Await], whose options it calls with the turn that has the id of the message as its key;
// OnQuestion is called by a separate goroutine, for the questions of the turn of the message.
//
// Of a message from which neither a turn, an output nor a handoff follows, the updates are those that are stored by then. A turn that
// fails has no response if its workflow sends none to failures (`compat: {silent: true}`). It fails with [ErrConflict] if the key of the
// turn was used before with other data.
func (c *Client) AwaitMessage(ctx context.Context, id MessageID) (*MessageOutcome, error) {
	if err := id.check(); err != nil {
		return nil, fmt.Errorf("await a message: %w", err)
	}
	return c.awaitMessage(ctx, id, "")
}

// DoMessage publishes a message of an agent and waits like [Client.AwaitMessage] for what follows from it. It fails with
// [ErrMessageConflict] if the id has other content.
func (c *Client) DoMessage(ctx context.Context, m *Message) (*MessageOutcome, error) {
	e, err := m.event(false)
	if err != nil {
		return nil, err
	}
	return c.doMessage(ctx, e, max(m.Depth, depth(ctx)))
}

// DoUserMessage is [Client.DoMessage] for a message of a user.
func (c *Client) DoUserMessage(ctx context.Context, m *UserMessage) (*MessageOutcome, error) {
	e, err := m.message().event(true)
	if err != nil {
		return nil, err
	}
	return c.doMessage(ctx, e, depth(ctx))
}

func (c *Client) doMessage(ctx context.Context, e *events.AgentMessage, depth int) (*MessageOutcome, error) {
	if _, err := c.publishMessage(ctx, e, depth); err != nil {
		return nil, err
	}
	body, err := events.EncodeMessage(e, time.Now())
	if err == nil {
		e, err = events.DecodeMessage(body) // as workers read it: they find a user in the context variables, too
	}
	if err != nil {
		return nil, fmt.Errorf("await a message: %w", err)
	}
	sum, err := e.Fingerprint()
	if err != nil {
		return nil, fmt.Errorf("await message %.80q: %w", e.ID, err)
	}
	return c.awaitMessage(ctx, MessageID{App: e.App, Chat: e.Chat, Run: e.Run, Message: e.ID}, hex.EncodeToString(sum[:]))
}

// messageWait is a wait for what follows from a message.
type messageWait struct {
	c           *Client
	id          MessageID
	fingerprint string // of the content, "" if any will do
	out         MessageOutcome
	due         string        // what follows from the message, valid with its text
	changed     chan struct{} // a record of the message was stored
	turn        chan turnEnd  // of the wait for its turn, nil before that begins
	data        *string       // fingerprint of the data of its turn, nil before that is known
	corrections int           // how often its turn was corrected
	looks       int           // for the end of its turn
	turns       sync.WaitGroup
}

// turnEnd is the outcome of the wait for the turn of a message.
type turnEnd struct {
	response *Response
	err      error
}

func (c *Client) awaitMessage(ctx context.Context, id MessageID, fingerprint string) (*MessageOutcome, error) {
	w := &messageWait{c: c, id: id, fingerprint: fingerprint, changed: make(chan struct{}, 1)}
	if err := w.wait(ctx); err != nil {
		return nil, fmt.Errorf("await message %.80q of chat %.80q: %w", id.Message, id.Chat, err)
	}
	return &w.out, nil
}

// wait reads the message until all that follows from it is stored.
func (w *messageWait) wait(ctx context.Context) error {
	stopListening, err := w.listen()
	if err != nil {
		return err
	}
	defer stopListening()
	status := w.c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer w.c.nc.RemoveStatusListener(status)
	workers := w.c.watchWorkers(w.id.asTurn())
	defer workers.stop()
	claim := claimWatch{on: w.c.o.OnUnclaimed, deadline: time.Now().Add(w.c.o.NoWorkerAfter)}
	ofTurn, stop := context.WithCancel(ctx)
	defer w.turns.Wait()
	defer stop()
	for missing := errNotRead; ; {
		err := w.read(ctx)
		if err == nil && !w.done() {
			err = w.awaitTurn(ofTurn)
		}
		switch {
		case errors.Is(err, ErrMessageConflict), errors.Is(err, ErrConflict):
			return err
		case err == nil && w.done():
			return nil
		case ctx.Err() == nil:
			missing = w.missing(err)
		}
		workers.saw(err)
		claim.saw(w.id.asTurn(), w.out.Text != nil, err)
		if err := w.next(ctx, status, w.pause(err != nil || claim.pending()), missing); err != nil {
			return err
		}
	}
}

// listen notes each record of the message that is stored, until stop is called.
func (w *messageWait) listen() (stop func(), err error) {
	key := subjects.MessageKey(tenant(w.id.App), w.id.Chat, w.id.Run, w.id.Message)
	sub, err := w.c.nc.Subscribe(w.c.space.EventOfTurn(key, idempotency.AnyToken), func(*nats.Msg) {
		select {
		case w.changed <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen to its records: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only on a closed connection
}

// firstLook is after how long the message is read again once it is known that it makes a turn: that may never run, and of that there is
// no live copy. Each further time is twice as long.
const firstLook = 50 * time.Millisecond

// pause is after how long the message is read again without a live copy.
func (w *messageWait) pause(soon bool) time.Duration {
	pause := rereadEvery
	if w.follows("turn") && !w.follows("handoff") && w.out.Response == nil {
		pause = min(pause, firstLook<<w.looks)
		w.looks = min(w.looks+1, 10) //nolint:mnd // longer than rereadEvery
	}
	if soon {
		pause = min(pause, w.c.o.NoWorkerAfter/3)
	}
	return pause
}

// next waits until the message is to be read again. After a deadline the error has what is missing.
func (w *messageWait) next(ctx context.Context, status <-chan nats.Status, pause time.Duration, missing error) error {
	again := time.NewTimer(pause)
	defer again.Stop()
	select {
	case <-w.changed:
	case <-again.C:
	case s := <-status:
		if s == nats.CLOSED {
			return nats.ErrConnectionClosed
		}
	case end := <-w.turn:
		switch {
		case errors.Is(end.err, ErrConflict) && w.follows("handoff"): // its data may run under a reused key: that is known with the handoff
		case end.err != nil:
			return end.err
		default:
			w.turn = nil
			w.ended(end.response)
		}
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), missing)
		}
		return context.Cause(ctx)
	}
	return nil
}

// missing is why the wait is not over, from a read of the message.
func (w *messageWait) missing(err error) error {
	switch {
	case err != nil:
		return err
	case w.out.Text == nil:
		return fmt.Errorf("no worker has stored the message: check that it was published, and that pool %s has workers (turnctl doctor); or all are busy", w.c.o.Pool)
	case w.follows("turn") && w.out.Response == nil:
		return fmt.Errorf("the turn of the message has no response: see turnctl show %.80q %.80q", w.id.Chat, w.out.Text.Turn)
	default:
		return errors.New("the message is stored, and what follows from it is not: check that a worker runs (turnctl doctor)")
	}
}

// read reads the records of the message that are stored.
func (w *messageWait) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var updates []events.ContextUpdate
	for q := (api.TurnRequest{Chat: w.id.Chat, Run: w.id.Run, Message: w.id.Message}); ; {
		page, err := request[api.Page](ctx, w.c, tenant(w.id.App), api.VerbTurn, q)
		if err != nil {
			return err
		}
		for i := range page.Records {
			if err := w.note(&page.Records[i], &updates); err != nil {
				return err
			}
		}
		if page.Next <= q.From {
			break
		}
		q.From = page.Next
	}
	w.out.Updates = updates
	for w.out.Handoff != nil && w.follows("turn") && w.out.Response == nil {
		data, err := w.dataOfTurn(ctx)
		if err != nil {
			return err
		}
		end, _, err := w.c.ended(ctx, w.ofTurn(), data, new(questionWatch)) // it is stored before the handoff
		switch {
		case err != nil || end == nil:
			return err
		case end.ofOther(data):
			return ErrConflict
		}
		response, err := parseResponse(end.event)
		if err != nil {
			return corrupt(err)
		}
		w.ended(response)
	}
	return nil
}

// note takes a record of the message.
func (w *messageWait) note(r *api.Record, updates *[]events.ContextUpdate) error {
	e, err := events.Parse(r.Event)
	if err != nil {
		return fmt.Errorf("the record %s of the message cannot be read: %w", r.Kind, err)
	}
	switch r.Kind {
	case events.RecordText:
		if w.fingerprint != "" && r.Fingerprint != w.fingerprint {
			return ErrMessageConflict
		}
		w.due, w.out.Text = r.Due, new(events.Text)
		w.out.Output, w.out.Handoff, *updates = nil, nil, nil // older ones are of an earlier message with the id
		err = e.As(w.out.Text)
	case events.RecordStructuredOutput:
		w.out.Output = new(events.StructuredOutput)
		err = e.As(w.out.Output)
	case events.RecordContextUpdate:
		var u events.ContextUpdate
		err = e.As(&u)
		*updates = append(*updates, u)
	case events.RecordHandoff:
		w.out.Handoff = new(events.Handoff)
		err = e.As(w.out.Handoff)
	}
	return err
}
