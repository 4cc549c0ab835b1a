package oneturn

// A wait for a message reads its records from the workers' request API, like the wait for a turn in await.go, and waits for the
// response of its turn with that one. Live copies only trigger the next read.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// fails has no response if its workflow sends none to failures (`compat: {silent: true}`).
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
	due         string       // what follows from the message, valid with its text
	turn        chan turnEnd // of the wait for its turn, nil before that begins
	corrections int          // how often its turn was corrected
	turns       sync.WaitGroup
}

// turnEnd is the outcome of the wait for the turn of a message.
type turnEnd struct {
	response *Response
	err      error
}

func (c *Client) awaitMessage(ctx context.Context, id MessageID, fingerprint string) (*MessageOutcome, error) {
	fail := func(err error) (*MessageOutcome, error) {
		return nil, fmt.Errorf("await message %.80q of chat %.80q: %w", id.Message, id.Chat, err)
	}
	changed := make(chan struct{}, 1)
	key := subjects.MessageKey(tenant(id.App), id.Chat, id.Run, id.Message)
	sub, err := c.nc.Subscribe(c.space.EventOfTurn(key, idempotency.AnyToken), func(*nats.Msg) {
		select {
		case changed <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	status := c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer c.nc.RemoveStatusListener(status)
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	workers := c.watchWorkers(id.asTurn())
	defer workers.stop()
	claim := claimWatch{on: c.o.OnUnclaimed, deadline: time.Now().Add(c.o.NoWorkerAfter)}
	w := &messageWait{c: c, id: id, fingerprint: fingerprint}
	ofTurn, stop := context.WithCancel(ctx)
	defer w.turns.Wait()
	defer stop()
	missing := errNotRead
	for {
		err := w.read(ctx)
		switch {
		case errors.Is(err, ErrMessageConflict):
			return fail(err)
		case err == nil && w.done():
			return &w.out, nil
		case err == nil:
			w.awaitTurn(ofTurn)
		}
		if ctx.Err() == nil {
			missing = w.missing(err)
		}
		workers.saw(err)
		claim.saw(id.asTurn(), w.out.Text != nil, err)
		again := tick.C
		if err != nil || claim.pending() { // ask again soon
			again = time.After(min(rereadEvery, c.o.NoWorkerAfter/3))
		}
		select {
		case <-changed:
		case <-again:
		case s := <-status:
			if s == nats.CLOSED {
				return fail(nats.ErrConnectionClosed)
			}
		case end := <-w.turn:
			if end.err != nil {
				return fail(end.err)
			}
			w.turn = nil
			w.ended(end.response)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fail(fmt.Errorf("%w: %w", context.Cause(ctx), missing))
			}
			return fail(context.Cause(ctx))
		}
	}
}

// asTurn is the name of the message in the options of a client.
func (id *MessageID) asTurn() TurnID {
	return TurnID{App: id.App, Chat: id.Chat, Run: id.Run, Turn: id.Message}
}

// ofTurn is the identity of the turn that the message makes, or of its last correction.
func (w *messageWait) ofTurn() TurnID {
	return TurnID{App: w.id.App, Chat: w.id.Chat, Run: w.id.Run, Turn: w.out.Text.CorrectedTurn(w.corrections)}
}

// ended takes the response of the turn, unless a correction follows.
func (w *messageWait) ended(r *Response) {
	if r.Correcting && w.corrections < w.out.Text.Corrections {
		w.corrections++
		return
	}
	w.out.Response = r
}

// awaitTurn begins to wait for the response of the turn, once it is known that the message makes one.
func (w *messageWait) awaitTurn(ctx context.Context) {
	if !w.follows("turn") || w.turn != nil || w.out.Response != nil {
		return
	}
	w.turn = make(chan turnEnd, 1)
	w.turns.Go(func() {
		response, err := w.c.await(ctx, w.ofTurn(), "")
		w.turn <- turnEnd{response, err}
	})
}

// follows reports whether a turn or a handoff follows from the message.
func (w *messageWait) follows(what string) bool {
	return slices.Contains(strings.Split(w.due, ","), what)
}

// done reports whether all that follows from the message was read.
func (w *messageWait) done() bool {
	switch t := w.out.Text; {
	case t == nil:
		return false
	case w.follows("handoff") && w.out.Handoff == nil:
		return false
	case w.follows("turn"):
		return w.out.Response != nil || w.out.Handoff != nil // it has no response if its workflow sends none to failures
	default:
		return t.Turn != "" || t.Model == "" || t.StructuredOutput == nil && t.Unread == nil || w.out.Output != nil
	}
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
		end, _, err := w.c.ended(ctx, w.ofTurn(), "", new(questionWatch)) // it is stored before the handoff
		if err != nil || end == nil {
			return err
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
