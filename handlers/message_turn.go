package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// The turn of a message runs as if the producer had published it: an event with the same turn key and data is the same turn. Its
// claim names the message, so that the worker which ends the turn, perhaps days later and by an answer, a cancel or a sweep,
// completes the message.

// runTurnOf runs the turn that a message makes.
func (h *Handlers) runTurnOf(ctx context.Context, s *chatMessage) (*turn, inbound.Disposition) {
	event := &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: s.AppID, Chat: s.ChatID, Run: s.RunID, Turn: s.Turn},
		Workflow: s.WorkflowName, Agent: s.Agent, Model: s.Model, AutoToolMode: true, UserID: s.UserID, Enterprise: s.enterprise,
		TurnSequence: s.TurnSequence, ContextVariables: s.snapshot,
	}
	data := h.outputOf
	if s.Unread != nil {
		data = h.contentOf
	}
	var gone, err error
	if event.Data, err = data(ctx, s); err != nil {
		if gone = err; !store.Decided(err) {
			return nil, h.redeliver(s.m, "the structured output of a message cannot be read", err)
		}
	}
	t := newTurn(s.m, event)
	t.origin = s
	t.Depth = inbound.Depth(s.m.Header)
	t.setData(events.CanonicalData(event, len(s.m.Data)))
	if s.Unread != nil {
		t.Binding, _ = resolve(h.Bindings(), t) // for CompatSilent and the labels of metrics
		t.reject = &rejection{code: events.CodeValidationFailed, content: s.Unread.Content, payload: s.Unread.Payload}
	}
	if gone != nil {
		if err := h.withoutOutput(s, t, gone); err != nil {
			return nil, h.redeliver(s.m, "the claim of a turn cannot be read", err)
		}
	}
	return t, h.admit(ctx, t)
}

// outputOf returns the object of a message, out of its blob if it is in one.
func (h *Handlers) outputOf(ctx context.Context, s *chatMessage) (any, error) {
	return h.valueOf(ctx, s, &s.object, events.KindStructuredOutput, s.StructuredOutput)
}

// contentOf returns the content of a message, out of its blob if it is in one.
func (h *Handlers) contentOf(ctx context.Context, s *chatMessage) (any, error) {
	return h.valueOf(ctx, s, &s.content, events.KindText, s.Content)
}

// valueOf returns a value of a message as it was before the record was made, read once.
func (h *Handlers) valueOf(ctx context.Context, s *chatMessage, value *any, kind string, stored any) (any, error) {
	if *value != nil {
		return *value, nil
	}
	reading, done := store.Context(s.m.Held, ctx)
	defer done()
	var err error
	*value, err = h.Blobs.Value(reading, s.key, kind, stored)
	return *value, err
}

// turnIsOver reports whether the turn of a message has ended, or will never run: it was not claimed, or other data was.
func (h *Handlers) turnIsOver(s *chatMessage, t *turn) (bool, error) {
	claims, err := h.Journal.Claims(s.m.Held, t.Key)
	if err != nil {
		return false, fmt.Errorf("read the claim of the turn: %w", err)
	}
	if t.claimed = claims[0]; t.claimed == nil || !t.mayBeClaimOf(t.claimed) {
		return true, nil
	}
	return h.Journal.Ended(s.m.Held, t.Key)
}

// claimedBy reports whether the claim of a turn names a message.
func (t *turn) claimedBy(s *chatMessage) bool {
	return messageOf(t.claimed) == s.key.Turn
}

// messageOf returns the token of the message that has made the turn of a claim, "" if none has.
func messageOf(claim *idempotency.Record) string {
	if claim == nil || claim.Err != nil {
		return ""
	}
	return claim.Meta.Message
}

// turnPause is how long a message waits before it looks again whether the turn has ended that its producer has published as well.
const turnPause = 5 * time.Second

// awaitTurn has a message delivered again: its turn runs by another event, whose worker does not know the message. If there is no
// place for it to wait, the sweep completes the message.
func (h *Handlers) awaitTurn(s *chatMessage, t *turn) inbound.Disposition {
	s.m.mayHold = t.keys()
	if d, requeued := h.requeue(s.m, max(turnPause, h.ageBasedDelay(s.m))); requeued {
		return d
	}
	return inbound.Acked()
}

// complete hands off after a turn that a message has made, once its response is stored. It does nothing for a turn that no message
// has made, and for a message that needs no handoff. The decider may take its time, so it is asked for as long as the tools of the
// worker may run.
func (h *Handlers) complete(m *message, t *turn, turn subjects.Key, claim *idempotency.Record) error {
	var s *chatMessage
	switch {
	case t != nil && t.origin != nil:
		s = t.origin
	case messageOf(claim) == "":
		return nil
	default:
		key := turn.OfTurn()
		key.Turn = claim.Meta.Message
		var err error
		if s, err = h.storedMessage(m, key); s == nil {
			return err
		}
		if t != nil { // a parked run has kept what the event of the message had
			s.snapshot, s.seen = t.ContextVariables, t.Vars
		}
	}
	if err := h.handOff(m.tools, s); err != nil {
		return err
	}
	s.turned = true
	return nil
}

// storedMessage reads a message by its key, nil if it has expired, or if nothing can be made of it, now or later.
func (h *Handlers) storedMessage(m *message, key subjects.Key) (*chatMessage, error) {
	record, err := h.Journal.TextOf(m.Held, key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case err != nil && !errors.Is(err, events.ErrStateCorrupt):
		return nil, err
	}
	text, errText := events.ReadText(record.Data)
	if errText != nil {
		h.Logger.Error("the text of a message cannot be read; nothing more follows from it", "key", key.String(), "err", events.LogText(errText))
		return nil, nil //nolint:nilnil // see above
	}
	return &chatMessage{Text: text, m: m, key: key, record: record}, nil
}
