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

// expire handles the end of the time for an answer. It contends with answers for the question, and the tool receives it
// like one. Whether the time is over is decided by the stored question and the clock of the server.
func (h *Handlers) expire(ctx context.Context, m *message, in subjects.Inbound, body *events.Message) inbound.Disposition {
	e, err := body.Expire()
	if err != nil {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	key, ok := subjects.ParseCall(e.Key)
	want := subjects.Inbound{Pool: in.Pool, Kind: events.KindExpire, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat}
	if !ok || in != want || subjects.Token(e.App) != key.App || subjects.Token(e.Chat) != key.Chat {
		return h.deadLetter(m, deadletter.ReasonSubjectMismatch, fmt.Errorf("an expiry of a question of call %.300q does not belong on subject %.300q", e.Key, m.Subject))
	}
	m.mayHold = []subjects.Key{key.OfTurn()} // a step may have asked
	if d, requeued := h.deferAgain(m, in.Workflow); requeued {
		return d
	}
	q, err := h.readQuestion(m.Held, key, e.Ask)
	if err == nil {
		if why := h.misplaced(q, in); why != "" {
			return h.notExpired(m, e, events.AnswerForbidden, why)
		}
	}
	if d, requeued, _ := h.requeueUnknownWorkflow(m, in.Workflow, q); requeued {
		return d
	}
	switch {
	case errors.Is(err, errNoQuestion):
		if d, requeued := h.requeueUnknownQuestion(m, e); requeued {
			return d
		}
		return h.notExpired(m, e, events.AnswerUnknown, textUnknown)
	case errors.Is(err, query.ErrUnreadable):
		return h.notExpired(m, e, events.AnswerClosed, textDamaged)
	case err != nil:
		return h.redeliver(m, "the question cannot be read", err)
	}
	if !e.Forced {
		wait, err := h.timeLeft(m, q.Answer.ExpiresAt)
		switch {
		case err != nil:
			return h.redeliver(m, "the time of the server cannot be read", err)
		case q.Answer.ExpiresAt.IsZero():
			return h.notExpired(m, e, events.AnswerInvalid, "The question is open for as long as its turn.")
		case wait > longestNak && h.Schedule != nil:
			return h.reschedule(m, e, q)
		case wait > 0:
			return h.requeueAlways(m, min(wait, longestNak))
		}
	}
	if !m.Fresh() {
		return inbound.Left()
	}
	v, err := h.Journal.Answer(m.Held, idempotency.Answer{
		Key: key, ID: e.Ask, Lease: m.Lease, Trace: inbound.Trace(m.Header), NewOwner: (*newOwner)(h), Outcome: idempotency.Expired, Ack: h.acks(m, q, ""),
	})
	switch {
	case err != nil:
		return h.redeliver(m, "the expiry could not be stored", err)
	case v.Status == idempotency.Early:
		if d, requeued := h.requeueUnknownQuestion(m, e); requeued {
			return d
		}
	}
	result := answerResult(v, q.ToolCallID, q.Secret)
	if v.Status == idempotency.Accepted {
		result.Message = "The question has expired."
		h.Logger.Debug("a question has expired", "workflow", q.WorkflowName, "chat", q.ChatID, "question", q.ToolCallID, "forced", e.Forced)
	}
	h.Metrics.Expiries.WithLabelValues(string(result.Code)).Inc()
	h.sendResult(m, result)
	return h.applyDecision(ctx, m, key, v)
}

// requeueUnknownQuestion requeues an expiry whose question is not known. The question was stored before its expiry was
// scheduled, and no worker schedules another one, so a read without it counts as stale for as long as its turn may live.
// An expiry that an operator forces may name any question.
func (h *Handlers) requeueUnknownQuestion(m *message, e *events.Expire) (inbound.Disposition, bool) {
	if d, requeued := h.requeueEarly(m); requeued || e.Forced || h.MaxTurnLife > 0 && h.age(m) >= h.MaxTurnLife {
		return d, requeued
	}
	return h.requeue(m, h.ageBasedDelay(m))
}

// reschedule ends an expiry long before its time: instead of requeuing it until then, it schedules the expiry again.
func (h *Handlers) reschedule(m *message, e *events.Expire, q *storedQuestion) inbound.Disposition {
	again := *e
	again.ExpiresAt, again.ToolCallID = q.Answer.ExpiresAt, q.ToolCallID
	if err := h.Schedule(m.Held, &again); err != nil {
		return h.redeliver(m, "the expiry could not be scheduled", err)
	}
	return h.notExpired(m, e, events.AnswerInvalid, "The time to answer is not over.")
}

// timeLeft returns the time until end by the clock of the server: none if the server stored the message after it, else the
// server is asked for its time.
func (h *Handlers) timeLeft(m *message, end time.Time) (time.Duration, error) {
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

// notExpired ends an expiry before anything of it is stored.
func (h *Handlers) notExpired(m *message, e *events.Expire, code events.AnswerCode, text string) inbound.Disposition {
	h.Metrics.Expiries.WithLabelValues(string(code)).Inc()
	h.sendResult(m, events.NewAnswerResult(code, e.ToolCallID, text))
	h.logThrottled(m, slog.LevelInfo, "expiry without effect", string(code), "code", string(code), "chat", throttle.Cut(e.Chat), "question", throttle.Cut(e.ToolCallID), "seq", m.Lease.Seq)
	return inbound.Acked()
}
