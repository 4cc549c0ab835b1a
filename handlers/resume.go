package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// resume handles the request of a sweep, or of an operator, to end or continue a turn whose message is gone
// (docs/journal.md). Any publisher may send it: the journal decides whether there is anything to do.
func (h *Handlers) resume(ctx context.Context, m *message, body *events.Message) inbound.Disposition {
	e, err := body.Resume()
	if err != nil {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	key, err := h.resumeKey(m, e)
	if err != nil {
		return h.deadLetter(m, deadletter.ReasonSubjectMismatch, err)
	}
	if !m.Fresh() {
		return inbound.Left()
	}
	if e.Message {
		return h.resumeMessage(ctx, m, key)
	}
	return h.resumeTurn(ctx, m, key, e, nil)
}

// resumeMessage completes a message whose inbound message is gone. Each of its records is created once, so it does no harm if
// another worker does the same.
func (h *Handlers) resumeMessage(ctx context.Context, m *message, key subjects.Key) inbound.Disposition {
	s, err := h.storedMessage(m, key)
	switch {
	case err != nil:
		return h.redeliver(m, "the message to resume cannot be read", err)
	case s == nil:
		return inbound.Acked()
	}
	s.resumed = true
	return h.follow(ctx, s)
}

// resumeDeferred handles a message that was deferred before and whose turn has a claim by another message: that may be
// the copy before the deferral, and then no message in the stream holds the turn any more. It ends or continues the
// turn as a resume does, which changes nothing while the lease is in its stream. It reports false for a message that was
// never deferred. Own is the turn as its own message has it, nil for other messages.
func (h *Handlers) resumeDeferred(ctx context.Context, m *message, key subjects.Key, own *turn) (inbound.Disposition, bool) {
	if m.Deferrals == 0 || h.LeaseHeld == nil {
		return inbound.Disposition{}, false
	}
	e := &events.Resume{}
	if own != nil {
		e.TurnID, e.Workflow = own.TurnID, own.Workflow
	}
	return h.resumeTurn(ctx, m, key.OfTurn(), e, own), true // it may be the key of a step that has asked
}

// resumeTurn ends or continues a turn whose message is gone.
func (h *Handlers) resumeTurn(ctx context.Context, m *message, key subjects.Key, e *events.Resume, own *turn) inbound.Disposition {
	decision, err := h.Journal.Resume(m.Held, idempotency.Resume{
		Key: key, Lease: m.Lease, Origins: m.Origins, Trace: inbound.Trace(m.Header), Held: h.LeaseHeld, NewOwner: (*newOwner)(h),
		Expired: func(claimed time.Time) bool { return h.MaxTurnLife > 0 && m.Arrived.Sub(claimed) > h.MaxTurnLife },
	})
	switch {
	case err != nil:
		h.logThrottled(m, slog.LevelWarn, "the turn could not be resumed; the message will be redelivered", "", "key", key.String(), "seq", m.Lease.Seq, "err", err)
		return inbound.Left()
	case decision.Action == idempotency.Leave:
		return inbound.Left()
	case decision.Action == idempotency.Requeue:
		m.mayHold = []subjects.Key{key}
		return h.requeueLease(m, decision.Turn.Lease.Same(m.Lease))
	case decision.Action != idempotency.Run && decision.Action != idempotency.EndTurn:
		h.Logger.Debug("nothing to resume", "key", key.String(), "seq", m.Lease.Seq)
		return h.ackMerged(ctx, m, decision)
	}
	if decision.Action == idempotency.Run {
		h.Metrics.Takeovers.Inc()
	}
	return h.continueTurn(ctx, m, e, decision, own)
}

// resumeKey returns the key of the turn that a resume names, after a check that it belongs on its subject.
func (h *Handlers) resumeKey(m *message, e *events.Resume) (subjects.Key, error) {
	key := subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn)
	if e.Key != "" {
		var ok bool
		if key, ok = subjects.ParseCall(e.Key); !ok || key.Call != subjects.SingleCall {
			return key, fmt.Errorf("key is %.300q, want <app>.<chat>.<turn>.%s in tokens", e.Key, subjects.SingleCall)
		}
	}
	in, ok := h.Space.ParseIn(m.Subject)
	want := subjects.Inbound{Pool: in.Pool, Kind: events.KindResume, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat}
	if !ok || in != want {
		return key, fmt.Errorf("a resume of turn %.300q does not belong on subject %.300q", key.String(), m.Subject)
	}
	return key, nil
}
