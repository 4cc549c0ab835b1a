package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Messages that are acknowledged although they end no turn: duplicates, messages of turns that have ended, and messages
// whose turn continues without them.
//
// An acknowledgement of any delivery removes the message from the stream, also one that a later delivery holds as the
// lease of a turn that runs. So before a message is acknowledged whose turn has not ended, the journal is asked whether
// a later delivery has claimed the turn or taken it over ([Handlers.ackUnlessLaterDelivery]). A flood of new messages
// costs no such read, see [Handlers.onlyDelivery].

// keys are the keys under which a turn may have been claimed: its workflow may have run reused keys when it was.
func (t *turn) keys() []subjects.Key { return []subjects.Key{t.Key, t.reusedKey()} }

// turnLeases returns the current leases of the turns that a message may hold.
func (h *Handlers) turnLeases(m *message) ([]idempotency.Lease, error) {
	if len(m.turns) == 0 {
		return nil, nil
	}
	leases, err := h.Journal.Leases(m.Held, m.turns...)
	if err != nil {
		return nil, fmt.Errorf("find the delivery that holds the turn: %w", err)
	}
	return leases, nil
}

// onlyDelivery reports whether a message has been delivered once and cannot have been redelivered by now. The server
// redelivers when an ack wait is over, and a new leader of the consumer, or a restarted server, counts it from when the
// stream took the message, unless there was a heartbeat. So a message that has waited in the stream may have been
// redelivered however fresh this delivery is. An ack wait that an operator lowers by hand can be known too late.
func (h *Handlers) onlyDelivery(m *message) bool {
	return m.Lease.Delivery == 1 && m.Fresh() && m.AckWait != nil && h.serverNow(m).Sub(m.Arrived) < m.AckWait()/2
}

// ackUnlessLaterDelivery acknowledges a message whose turn continues without it. It leaves a message that a later
// delivery holds, or may hold.
func (h *Handlers) ackUnlessLaterDelivery(m *message) inbound.Disposition {
	if h.onlyDelivery(m) {
		return inbound.Acked()
	}
	leases, err := h.turnLeases(m)
	return h.ackUnlessLaterLease(m, leases, err)
}

// ackUnlessLaterLease is [Handlers.ackUnlessLaterDelivery] with the leases, or why they are not known.
func (h *Handlers) ackUnlessLaterLease(m *message, leases []idempotency.Lease, err error) inbound.Disposition {
	later := slices.ContainsFunc(leases, func(l idempotency.Lease) bool { return l.After(m.Lease) })
	switch {
	case err != nil:
		return h.redeliver(m, "a later delivery may hold its turn", err)
	case later || !m.Fresh():
		h.Logger.Debug("a later delivery may hold the message; not acknowledged", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery)
		return inbound.Left()
	}
	return inbound.Acked()
}

// turnOfAnswer returns the key of the turn that an answer names; none if only its question leads to it.
func turnOfAnswer(r *events.ToolCallResponse) []subjects.Key {
	callID, _, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil
	}
	if _, qualified := events.Unqualified(callID); qualified {
		return nil
	}
	return []subjects.Key{subjects.TurnKey(r.App, r.Chat, r.Run, events.TurnOfCallID(callID, r.Run))}
}

// claimedByOther handles a message whose turn another message has claimed.
func (h *Handlers) claimedByOther(ctx context.Context, t *turn) inbound.Disposition {
	if d, resumed := h.resumeDeferred(ctx, t.m, t.Key, t.StructuredOutputReady); resumed {
		return d
	}
	return h.ackDuplicate(t)
}

// ackEnded acknowledges a message whose turn has its response.
func (h *Handlers) ackEnded(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	if d.Code == events.CodeStateCorrupt {
		return h.deadDamagedResponse(t)
	}
	if done := h.mergeAndAck(t.m.Held, ctx, t, d.End); done.Do != inbound.Ack {
		return done
	}
	return h.ackDuplicate(t)
}

// ackDuplicate acknowledges a message whose turn another message holds, or has ended.
func (h *Handlers) ackDuplicate(t *turn) inbound.Disposition {
	h.Metrics.Duplicates.Inc()
	h.Logger.Debug("duplicate", "chat", t.Chat, "turn", t.CallID, "seq", t.m.Lease.Seq)
	return inbound.Acked()
}

// staleFor is how long after a response a read that does not find a record older than the response is treated as stale.
const staleFor = 5 * time.Minute

// notMerged is why a message is redelivered whose turn has ended.
const notMerged = "the context changes of a response are not merged yet"

// ackMerged acknowledges an answer, expiry, cancel or resume that has nothing (more) to do for its turn, once the context
// changes of a response are merged.
func (h *Handlers) ackMerged(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if err := h.mergeMissing(m.Held, ctx, m, d.End); err != nil {
		return h.redeliver(m, notMerged, err)
	}
	return inbound.Acked()
}

// ackLateResult acknowledges the message of a turn that another run has ended, once the changes of that run are merged:
// the worker that stored its response may have died, and this message may be the last one of the turn.
func (h *Handlers) ackLateResult(ctx context.Context, t *turn) inbound.Disposition {
	end, err := h.Journal.End(ctx, t.Key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound): // it has expired, or was purged
		return inbound.Acked()
	case err != nil:
		return h.redeliverTurn(t, notMerged, err)
	}
	return h.mergeAndAck(ctx, t.m.tools, t, &end)
}

// mergeAndAck acknowledges the message of a turn that ended with a stored response, once its context changes are merged.
func (h *Handlers) mergeAndAck(ctx, tools context.Context, t *turn, end *idempotency.Record) inbound.Disposition {
	if err := h.mergeMissing(ctx, tools, t.m, end); err != nil {
		return h.redeliverTurn(t, notMerged, err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return inbound.Acked()
}

// mergeMissing merges the context changes that a stored response names, unless they are merged: the worker that stored
// it may have died before it could. End is nil for a turn that has not ended. The changes are older than their
// response, so a read that finds only the response may be stale, and is repeated with the next delivery for a while.
//
// It reads and writes until ctx ends, and retries until tools end.
func (h *Handlers) mergeMissing(ctx, tools context.Context, m *message, end *idempotency.Record) error {
	if end == nil || !query.NamesContext(end) {
		return nil
	}
	r := query.Response(end)
	found, err := h.Journal.DeltaOf(ctx, end)
	switch {
	case errors.Is(err, idempotency.ErrDamaged):
		return h.mergeOutcome(variables.DamagedDelta(err), r.ChatID, r.CallID)
	case errors.Is(err, idempotency.ErrNotFound) && h.serverNow(m).Sub(end.Time) > staleFor: // it has expired, or was purged
		return nil
	case err != nil:
		return err
	}
	d, err := variables.DecodeDelta(found.Data)
	if err != nil {
		return h.mergeOutcome(err, r.ChatID, r.CallID)
	}
	writing, done := store.Context(ctx, tools)
	defer done()
	return h.mergeOutcome(h.Variables.Merge(writing, r.AppID, r.ChatID, found.Seq, d), r.ChatID, r.CallID)
}

// mergeOutcome returns the error of a merge after the response was stored, nil if a redelivery cannot help. Changes that
// can never be merged, although they could be staged, are logged for the operator.
func (h *Handlers) mergeOutcome(err error, chat, turn string) error {
	if err == nil || !store.Decided(err) {
		return err
	}
	h.Logger.Error("context changes that a response names cannot be merged; they stay in the journal", "chat", chat, "turn", turn, "err", events.LogText(err))
	return nil
}
