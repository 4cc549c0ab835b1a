package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// answer handles the answer of a person to a question: tenant, chat, user, deadline and schema are checked before anything
// is stored; the first stored answer counts. The turn continues where it waits: in the memory of its worker, or here, if
// it was parked (docs/journal.md).
func (h *Handlers) answer(ctx context.Context, m *message, in subjects.Inbound, body *events.Message) inbound.Disposition {
	r, err := body.Answer()
	if err != nil {
		return h.deadUnreadable(m, err)
	}
	if !events.AnswerKind(in.Kind) || in.App != subjects.Token(r.App) || in.Chat != subjects.Token(r.Chat) ||
		r.Workflow != "" && in.Workflow != subjects.Token(r.Workflow) {
		return h.refuseForeign(m, in, r)
	}
	m.mayHold = turnOfAnswer(r)
	if d, requeued := h.deferAgain(m, in.Workflow); requeued {
		return d
	}
	q, err := h.findQuestion(m.Held, r, h.age(m) >= earlyFor)
	if q != nil {
		m.mayHold = []subjects.Key{q.key.OfTurn()} // a step may have asked
	}
	m.secret, m.asksSecret = q == nil || q.Secret, q != nil && q.Secret
	if err == nil {
		if why := h.misplaced(q, in); why != "" {
			return h.refuse(m, r, events.AnswerForbidden, why)
		}
		if q.UserID != "" && q.UserID != r.UserID {
			return h.refuse(m, r, events.AnswerForbidden, textNotUsers)
		}
	}
	d, requeued, refused := h.requeueUnknownWorkflow(m, in.Workflow, q)
	switch {
	case requeued:
		return d
	case refused:
		return h.refuseUnlessAccepted(m, r, q)
	case errors.Is(err, errNoQuestion), isBusy(err):
		if d, requeued := h.requeueEarly(m); requeued {
			return d
		}
		switch {
		case isBusy(err):
			return h.refuse(m, r, events.AnswerBusy, textBusy)
		case errors.Is(err, errTooManyTurns):
			return h.refuse(m, r, events.AnswerUnknown, textTooMany)
		}
		return h.refuse(m, r, events.AnswerUnknown, textUnknown)
	case errors.Is(err, query.ErrUnreadable):
		return h.refuse(m, r, events.AnswerClosed, textDamaged)
	case err != nil:
		return h.redeliver(m, "the question cannot be read", err)
	case !m.Fresh():
		return inbound.Left()
	}
	return h.storeAnswer(ctx, m, r, q)
}

// deadUnreadable makes a dead letter of a message that cannot be read. The sender of an answer receives a result as well.
func (h *Handlers) deadUnreadable(m *message, err error) inbound.Disposition {
	if m.Private {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerInvalid)).Inc()
		h.sendResult(m, events.NewAnswerResult(events.AnswerInvalid, "", "The answer cannot be read: "+events.LogText(err)+"."))
	}
	return h.deadLetter(m, deadletter.DecodeReason(err), err)
}

// refuseForeign rejects an answer whose body names another tenant, chat or workflow than its subject. It is reported in the
// chat of the subject: rights are granted on subjects.
func (h *Handlers) refuseForeign(m *message, in subjects.Inbound, r *events.ToolCallResponse) inbound.Disposition {
	v := events.NewAnswerResult(events.AnswerForbidden, r.ToolCallID, textForeign)
	ids := query.IDs(subjects.Key{App: in.App, Chat: in.Chat}, events.TurnID{App: r.App, Chat: r.Chat})
	sender := *r
	sender.App, sender.Chat = ids.App, ids.Chat
	h.reportResult(m, &sender, v)
	return inbound.Acked()
}

// storeAnswer stores an answer, if it is valid and the question is open, and carries out the decision of the journal.
func (h *Handlers) storeAnswer(ctx context.Context, m *message, r *events.ToolCallResponse, q *storedQuestion) inbound.Disposition {
	content, err := h.schemas.Check(q.ToolCall, r.Value)
	if content.SchemaErr != nil {
		h.lines.Log(m.Held, h.Logger, h.Now(), "schema", q.key.App, throttle.Several, slog.LevelError,
			"the schema of a question can no longer be used", "question", throttle.Cut(q.ToolCallID), "err", events.LogText(content.SchemaErr))
	}
	if err == nil && q.Secret {
		content.Digest = ""
		if content.Data, err = answers.Seal(h.SecretKeys, q.key, q.ask, content.Data); err != nil {
			return h.requeueUnsealable(m, r, q, err)
		}
	}
	switch {
	case err != nil && q.Secret: // the error may name entries
		return h.refuse(m, r, events.AnswerInvalid, "The answer cannot be stored.")
	case err != nil:
		return h.refuse(m, r, events.AnswerInvalid, "The answer cannot be stored: "+events.LogText(err)+".")
	}
	v, err := h.Journal.Answer(m.Held, idempotency.Answer{
		Key: q.key, ID: q.ask, Lease: m.Lease, Trace: inbound.Trace(m.Header), NewOwner: (*newOwner)(h),
		Outcome: idempotency.Answered, Digest: content.Digest, Data: content.Data,
		Check: func(idempotency.Record) error {
			if end := q.Answer.ExpiresAt; !end.IsZero() && !m.Sent(&m.Message).Before(end) {
				return &answers.InvalidError{Code: events.AnswerExpired, Text: textExpired}
			}
			if content.Invalid != nil {
				return content.Invalid
			}
			return nil
		},
		Ack: h.acks(m, q, r.UserID),
	})
	switch {
	case errors.Is(err, idempotency.ErrRefused):
		return h.refuse(m, r, events.AnswerInvalid, fmt.Sprintf("The answer of %d bytes is too large to store: store the data elsewhere and answer with a reference.", len(content.Data)))
	case err != nil:
		return h.redeliver(m, "the answer could not be stored", err)
	case v.Status == idempotency.Early:
		if d, requeued := h.requeueEarly(m); requeued {
			return d
		}
	}
	if v.Status == idempotency.Accepted || v.Status == idempotency.Replayed {
		writing, done := store.Context(m.Held, m.tools)
		err = h.setByAnswer(writing, q, content.Data, v.Turn, v.Seq)
		done()
		if err != nil {
			return h.redeliver(m, "the context variables that the answer sets could not be stored", err)
		}
	}
	h.reportResult(m, r, answerResult(v, r.ToolCallID, q.Secret))
	if v.Status == idempotency.Accepted {
		h.publishCompatEvents(q, r.Value)
	}
	return h.applyDecision(ctx, m, q.key, v)
}

// requeueUnsealable requeues an answer to a secret question that this worker has no keys for: a worker with keys asked it.
func (h *Handlers) requeueUnsealable(m *message, r *events.ToolCallResponse, q *storedQuestion, err error) inbound.Disposition {
	h.logThrottled(m, slog.LevelWarn, "a secret answer cannot be sealed; it is offered to other workers", "", "seq", m.Lease.Seq, "err", events.LogText(err))
	if d, requeued := h.requeue(m, h.ageBasedDelay(m)); requeued {
		return d
	}
	return h.refuseUnlessAccepted(m, r, q)
}

// applyDecision carries out the decision of the journal on a message that closes a question: an answer or an expiry.
func (h *Handlers) applyDecision(ctx context.Context, m *message, key subjects.Key, v idempotency.AnswerDecision) inbound.Disposition {
	switch v.Action {
	case idempotency.Run, idempotency.EndTurn:
		return h.continueParked(ctx, m, v.Decision)
	case idempotency.Requeue:
		return h.requeueLease(m, v.Turn.Lease.Same(m.Lease))
	case idempotency.Leave:
		if v.Status != idempotency.Early {
			return inbound.Left()
		}
	case idempotency.Signalled:
		if d, resumed := h.resumeDeferred(ctx, m, key, nil); resumed {
			return d
		}
	case idempotency.Done, idempotency.Duplicate, idempotency.Conflict:
	}
	return h.ackMerged(ctx, m, v.Decision)
}

// redeliver leaves a message whose stored records are not known.
func (h *Handlers) redeliver(m *message, what string, err error) inbound.Disposition {
	if absent, ok := errors.AsType[*absentWorkflowError](err); ok {
		return h.awaitWorkflow(m, absent)
	}
	h.logThrottled(m, slog.LevelWarn, "the message will be redelivered", what, "why", what, "seq", m.Lease.Seq, "delivery", m.Lease.Delivery, "err", events.LogText(err))
	if errors.Is(err, ErrDraining) {
		return inbound.NakAfter(0)
	}
	return inbound.Left()
}

// publishCompatEvents publishes the events of earlier releases that report the end of a question, for frontends of
// workflows with compat.events. No frontend depends on them, so they are published once, and not stored.
func (h *Handlers) publishCompatEvents(q *storedQuestion, value any) {
	if !h.Bindings().CompatEvents(q.WorkflowName) {
		return
	}
	kind, event := events.KindUIToolDismiss, any(&events.UIToolDismiss{
		Kind: events.KindUIToolDismiss, AppID: q.AppID, ChatID: q.ChatID, EventID: q.ToolCallID, UIToolID: q.ToolName,
	})
	if q.Display == events.DisplayInline || q.Display == events.DisplayComposer {
		kind, event = events.KindUIToolComplete, &events.UIToolComplete{
			Kind: events.KindUIToolComplete, AppID: q.AppID, ChatID: q.ChatID, EventID: q.ToolCallID, UIToolID: q.ToolName,
			Display: q.Display, Status: statusOf(q, value),
		}
	}
	data, err := events.Encode(kind, event, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(q.AppID, q.ChatID, kind), data)
	}
	if err != nil {
		h.Logger.Debug("an event of an earlier release could not be published", "kind", kind, "question", q.ToolCallID, "err", events.LogText(err))
	}
}

// statusOf returns the status field of an answer, "completed" without one. A component sets it to a short keyword; a longer
// text, and any part of a secret answer, is not repeated.
func statusOf(q *storedQuestion, value any) string {
	const word = 32 // bytes
	object, _ := value.(map[string]any)
	if status, ok := object["status"].(string); ok && status != "" && len(status) <= word && !q.Secret {
		return status
	}
	return "completed"
}

// Bounds of erasing a message that was a secret answer.
const (
	// erasePause is the delay of the next attempt after a failure.
	erasePause = 5 * time.Second
	// eraseFor is how long a message is kept in the stream for that, by the server's clock; then it is
	// acknowledged.
	eraseFor = time.Hour
)

// Bounds of erasing messages that may or may not be secret. Of 64 places that are taken for ten seconds a single tenant
// gets half: three messages a second, and a burst of 32.
const (
	erasures   = 64
	erasureFor = 10 * time.Second
)

// mustErase reports whether a message that is acknowledged is overwritten in the file of its stream as well, for which the
// server writes and syncs megabytes. Each answer to a secret question is. Whether an answer to an unknown question, or
// one that cannot be read, is secret is not known: some of a tenant are erased, and not a flood of them, for which every
// other tenant would have to wait. A sealed message reveals nothing.
func (h *Handlers) mustErase(m *message) bool {
	switch {
	case m.asksSecret:
		return m.secret
	case !m.secret, m.Sealed:
		return false
	}
	in, _ := h.Space.ParseIn(m.Subject)
	if h.erased.TakeFor(in.App, 1, h.Now(), erasureFor) {
		return true
	}
	h.logThrottled(m, slog.LevelWarn, "an answer to no known question is acknowledged and not erased: the tenant sends too many", "", "seq", m.Lease.Seq)
	return false
}

// eraseRetryDelay is the delay of the next attempt after a failure to erase a message, 0 for none.
func (h *Handlers) eraseRetryDelay(m *message) time.Duration {
	if h.serverNow(m).Sub(m.Arrived) < eraseFor {
		return erasePause
	}
	return 0
}
