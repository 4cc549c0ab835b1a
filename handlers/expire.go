package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// longestWait is how long before its time an expiry is given back until then.
const longestWait = time.Minute

// expire handles the end of the time for an answer. It contends with answers for the question,
// and is handed to the tool like one. What decides whether the time is over is the question as
// it was stored, and the clock of the server.
func (h *Handlers) expire(ctx context.Context, m *message, in subjects.Inbound, body *events.Message) inbound.Disposition {
	e, err := body.Expire()
	if err != nil {
		return h.dead(m, deadletter.DecodeReason(err), err)
	}
	key, ok := subjects.ParseCall(e.Key)
	want := subjects.Inbound{Pool: in.Pool, Kind: events.KindExpire, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat}
	if !ok || in != want || subjects.Token(e.App) != key.App || subjects.Token(e.Chat) != key.Chat {
		return h.dead(m, deadletter.ReasonSubjectMismatch, fmt.Errorf("an expiry of a question of call %.300q does not belong on subject %.300q", e.Key, m.Subject))
	}
	m.turns = []subjects.Key{key}
	if d, back := h.putAsideAgain(m, in.Workflow); back {
		return d
	}
	q, err := h.inquire(m.Held, key, e.Ask)
	if err == nil {
		if why := h.misplaced(q, in); why != "" {
			return h.notExpired(m, e, events.AnswerForbidden, why)
		}
	}
	if d, back, _ := h.elsewhere(m, in.Workflow, q); back {
		return d
	}
	switch {
	case errors.Is(err, errNoQuestion):
		if d, back := h.unasked(m, e); back {
			return d
		}
		return h.notExpired(m, e, events.AnswerUnknown, textUnknown)
	case errors.Is(err, query.ErrUnreadable):
		return h.notExpired(m, e, events.AnswerClosed, textDamaged)
	case err != nil:
		return h.undecided(m, "the question cannot be looked up", err)
	}
	if !e.Forced {
		wait, err := h.before(m, q.Answer.ExpiresAt)
		switch {
		case err != nil:
			return h.undecided(m, "the server does not tell the time", err)
		case q.Answer.ExpiresAt.IsZero():
			return h.notExpired(m, e, events.AnswerInvalid, "The question is open for as long as its turn.")
		case wait > longestWait && h.Schedule != nil:
			return h.tooSoon(m, e, q)
		case wait > 0:
			return h.keepPlaceUnbudgeted(m, min(wait, longestWait))
		}
	}
	if !m.Fresh() {
		return inbound.Left()
	}
	v, err := h.Journal.Answer(m.Held, idempotency.Answer{
		Key: key, ID: e.Ask, Lease: m.Lease, Trace: inbound.Trace(m.Header), NewOwner: (*taker)(h), Outcome: idempotency.Expired, Ack: h.acks(m, key, q, ""),
	})
	switch {
	case err != nil:
		return h.undecided(m, "the expiry could not be stored", err)
	case v.Status == idempotency.Early:
		if d, back := h.unasked(m, e); back {
			return d
		}
	}
	verdict := verdictOf(v, q.ToolCallID, q.Secret)
	if v.Status == idempotency.Accepted {
		verdict.Message = "The question has expired."
		h.Logger.Debug("a question has expired", "workflow", q.WorkflowName, "chat", q.ChatID, "question", q.ToolCallID, "forced", e.Forced)
	}
	h.Metrics.Expiries.WithLabelValues(string(verdict.Code)).Inc()
	h.tell(m, verdict)
	return h.follow(ctx, m, key, v)
}

// unasked gives an expiry back whose question is not known. The question was stored before its expiry was
// scheduled, and nobody schedules another one, so a read that lacks it is not believed for as long as its
// turn may live. An expiry that was asked for may name anything.
func (h *Handlers) unasked(m *message, e *events.Expire) (inbound.Disposition, bool) {
	if d, back := h.early(m); back || e.Forced || h.MaxTurnLife > 0 && h.age(m) >= h.MaxTurnLife {
		return d, back
	}
	return h.giveBack(m, h.rarely(m))
}

// tooSoon ends an expiry long before its time, which would come back for as long: the server is
// told (again) when that is.
func (h *Handlers) tooSoon(m *message, e *events.Expire, q *inquiry) inbound.Disposition {
	again := *e
	again.ExpiresAt, again.ToolCallID = q.Answer.ExpiresAt, q.ToolCallID
	if err := h.Schedule(m.Held, &again); err != nil {
		return h.undecided(m, "the expiry could not be scheduled", err)
	}
	return h.notExpired(m, e, events.AnswerInvalid, "The time to answer is not over.")
}

// before returns how long it is until a time by the clock of the server, which says when it took
// the message; only if that was earlier, it is asked.
func (h *Handlers) before(m *message, end time.Time) (time.Duration, error) {
	if end.IsZero() || !m.Stored.Before(end) {
		return 0, nil
	}
	now := h.Now()
	if h.ServerTime != nil {
		var err error
		if now, err = h.ServerTime(m.Held); err != nil {
			return 0, err
		}
	}
	return end.Sub(now), nil
}

// notExpired ends an expiry that nothing was stored of.
func (h *Handlers) notExpired(m *message, e *events.Expire, code events.AnswerCode, text string) inbound.Disposition {
	h.Metrics.Expiries.WithLabelValues(string(code)).Inc()
	h.tell(m, events.NewAnswerResult(code, e.ToolCallID, text))
	h.often(m, slog.LevelInfo, "nothing expires", string(code), "code", string(code), "chat", throttle.Cut(e.Chat), "question", throttle.Cut(e.ToolCallID), "seq", m.Lease.Seq)
	return inbound.Acked()
}
