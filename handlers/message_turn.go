package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// The turn of a message runs as if the producer had published it: an event with the same turn key and data is the same turn. Its
// claim names the message, so that the worker which ends the turn, perhaps days later and by an answer, a cancel or a sweep,
// completes the message.

// runTurnOf runs the turn that a message makes.
func (h *Handlers) runTurnOf(ctx context.Context, s *chatMessage) (*turn, inbound.Disposition) {
	read := h.outputOf
	var reject *rejection
	if s.Unread != nil {
		read = h.contentOf
		reject = rejectUnread(s.Unread)
	}
	data, gone := read(ctx, s)
	if gone != nil && !store.Decided(gone) {
		return nil, h.redeliver(s.m, "the structured output of a message cannot be read", gone)
	}
	t := h.newTurnOf(s, s.Turn, data, reject)
	if t.corrects = s.Corrections > 0; gone != nil {
		if err := h.withoutOutput(s, t, gone); err != nil {
			return nil, h.redeliver(s.m, "the claim of a turn cannot be read", err)
		}
	}
	return t, h.admit(ctx, t)
}

// newTurnOf returns a turn that a message makes, which is rejected if its output cannot be read.
func (h *Handlers) newTurnOf(s *chatMessage, turn string, data any, reject *rejection) *turn {
	event := &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: s.AppID, Chat: s.ChatID, Run: s.RunID, Turn: turn},
		Workflow: s.WorkflowName, Agent: s.Agent, Model: s.Model, AutoToolMode: true, UserID: s.UserID, Enterprise: s.enterprise,
		TurnSequence: s.TurnSequence, ContextVariables: s.snapshot, Data: data,
	}
	t := newTurn(s.m, event)
	t.origin = s
	t.Depth = inbound.Depth(s.m.Header)
	t.setData(events.CanonicalData(event, len(s.m.Data)))
	if reject != nil {
		t.Binding, _ = resolve(h.Bindings(), t) // for CompatSilent and the labels of metrics
		t.reject = reject
	}
	return t
}

// afterTurn does what follows from a turn of a message, unless the worker that ends it does.
func (h *Handlers) afterTurn(s *chatMessage, t *turn, d inbound.Disposition) inbound.Disposition {
	if d.Do != inbound.Ack || s.turnDone || s.m.unfinished {
		return d
	}
	switch end, over, err := h.endOfTurn(s, t); {
	case err != nil:
		return h.redeliver(s.m, "the turn of a message cannot be read", err)
	case !over && !t.claimedBy(s) && s.handsOff():
		return h.awaitTurn(s, t)
	case !over || t.claimed == nil || !s.handsOff() && !t.claimedBy(s):
		if err := h.noteTurn(s, t); err != nil {
			return h.redeliver(s.m, "where the turn of a message is could not be stored", err)
		}
		if !over {
			return d // the worker that ends it hands off
		}
		return h.turnEnded(s, t.Key, nil, nil)
	case end == nil:
		return h.turnEnded(s, t.Key, t.claimed, nil)
	default:
		return h.turnEnded(s, t.Key, t.claimed, query.Response(end))
	}
}

// ageOf is how old the message of a turn is. A resume, or a second event with its id, is younger than the message that it completes.
func (h *Handlers) ageOf(t *turn) time.Duration {
	age := h.age(t.m)
	if s := t.origin; s != nil && !s.record.Time.IsZero() {
		age = max(age, h.serverNow(t.m).Sub(s.record.Time))
	}
	return age
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

// errClaimNotShown is the error of a read that does not show the claim of a turn, which this worker or another one has stored: it is
// stale, and nothing may be decided by it.
var errClaimNotShown = errors.New("the read of the turn does not show its claim")

// endOfTurn returns the response of a turn of a message, nil if it has none. Over reports whether the turn has ended, or will never
// run: it can have no claim, or other data was claimed.
func (h *Handlers) endOfTurn(s *chatMessage, t *turn) (end *idempotency.Record, over bool, err error) {
	claims, err := h.Journal.Claims(s.m.Held, t.Key)
	if err != nil {
		return nil, false, fmt.Errorf("read the claim of the turn: %w", err)
	}
	switch t.claimed = claims[0]; {
	case t.claimed == nil && !t.unclaimed:
		return nil, false, errClaimNotShown
	case t.claimed == nil, !t.mayBeClaimOf(t.claimed):
		return nil, true, nil
	}
	end, err = h.Journal.ResponseOf(s.m.Held, t.Key)
	return end, end != nil, err
}

// noteTurn stores for sweeps where the turn of a message is, if they would not find it by the text. Without that they would resume
// the message again and again.
func (h *Handlers) noteTurn(s *chatMessage, t *turn) error {
	switch {
	case !s.handsOff() && !t.claimedBy(s): // never, or by an event of its producer: then nothing more follows
		return h.Journal.NoteTurn(s.m.Held, &s.record, s.key, idempotency.NoTurn)
	case s.handsOff() && t.claimed != nil && t.Key != subjects.TurnKey(s.AppID, s.ChatID, s.RunID, t.TurnID.Turn):
		return h.Journal.NoteTurn(s.m.Held, &s.record, s.key, t.Key.String())
	}
	return nil
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

// complete does what follows from the end of a turn that a message has made, once its response is stored. It does nothing for a turn
// that no message has made. The agents that it asks may take their time, for as long as the tools of the worker may run. Response returns
// the response, nil if it cannot be read.
func (h *Handlers) complete(m *message, t *turn, turn subjects.Key, claim *idempotency.Record, response func() *events.ToolResponse) inbound.Disposition {
	switch s, err := h.originOf(m, t, turn, claim); {
	case err != nil:
		return h.redeliver(m, notHandedOff, err)
	case s == nil:
		return inbound.Acked()
	default:
		return h.turnEnded(s, turn, claim, response())
	}
}

// completeEnded is complete for a turn whose response this worker has just stored. What its tool has changed is merged in the step that
// decides the handoff of its message; without a handoff, or if that was decided before, in a separate one.
func (h *Handlers) completeEnded(ctx context.Context, t *turn, r *events.ToolResponse) inbound.Disposition {
	s, err := h.originOf(t.m, t, t.Key, t.claimed)
	if err != nil {
		return h.redeliver(t.m, notHandedOff, err)
	}
	changes := t.changes
	if len(r.ContextKeys) == 0 {
		changes = nil
	}
	d := inbound.Acked()
	if s != nil {
		if s.handsOff() {
			s.changes, changes = changes, nil
		}
		d = h.turnEnded(s, t.Key, t.claimed, r)
		if s.changes != nil {
			changes, s.changes = s.changes, nil
		}
	}
	if changes != nil {
		if err := h.mergeChanges(ctx, t, changes); err != nil {
			return h.redeliverTurn(t, notMerged, err)
		}
		t.Hit(failpoint.AfterMerge)
	}
	return d
}

// originOf returns the message that has made a turn, nil if none has, or if it has expired or cannot be read.
func (h *Handlers) originOf(m *message, t *turn, turn subjects.Key, claim *idempotency.Record) (*chatMessage, error) {
	switch {
	case t != nil && t.origin != nil:
		return t.origin, nil
	case messageOf(claim) == "":
		return nil, nil //nolint:nilnil // there is none
	}
	key := turn.OfTurn()
	key.Turn = claim.Meta.Message
	s, err := h.storedMessage(m, key)
	if s != nil && t != nil { // a parked run has kept what the event of the message had
		s.snapshot, s.seen = t.ContextVariables, t.Vars
	}
	return s, err
}

// turnEnded has the output of a turn corrected that has failed, or hands off.
func (h *Handlers) turnEnded(s *chatMessage, turn subjects.Key, claim *idempotency.Record, r *events.ToolResponse) inbound.Disposition {
	if n, ok := s.correctionOf(turnOf(r)); ok && r.Correcting && n < s.Corrections {
		if claim == nil { // of another delivery perhaps, or of the event of a producer
			claims, err := h.Journal.Claims(s.m.Held, turn)
			if err == nil && claims[0] == nil {
				err = errClaimNotShown
			}
			if err != nil {
				return h.redeliver(s.m, "the claim of a turn cannot be read", err)
			}
			claim = claims[0]
		}
		if messageOf(claim) == s.key.Turn {
			return h.correct(s, n+1, r)
		}
	}
	if err := h.handOff(s.m.tools, s); err != nil {
		return h.redeliver(s.m, notHandedOff, err)
	}
	s.turnDone = true
	return inbound.Acked()
}

// turnOf returns the key of the turn of a response, "" if it cannot be read.
func turnOf(r *events.ToolResponse) string {
	if r == nil {
		return ""
	}
	return r.Turn
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
