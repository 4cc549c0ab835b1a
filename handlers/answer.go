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
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// answer handles what a person says to a question (design 6): tenant, chat, user, deadline and
// schema are checked before anything is stored; the first answer that is stored stands. The turn
// goes on where it waits: in the memory of its worker, or here, if it was parked.
func (h *Handlers) answer(ctx context.Context, m *message, in subjects.Inbound, body *events.Message) inbound.Disposition {
	r, err := body.Answer()
	if err != nil {
		return h.unparsed(m, err)
	}
	if !events.AnswerKind(in.Kind) || in.App != subjects.Token(r.App) || in.Chat != subjects.Token(r.Chat) ||
		r.Workflow != "" && in.Workflow != subjects.Token(r.Workflow) {
		return h.foreign(m, in, r)
	}
	m.turns = turnOf(r)
	if d, back := h.putAsideAgain(m, in.Workflow); back {
		return d
	}
	q, err := h.find(m.Held, r, h.age(m) >= earlyFor)
	if q != nil {
		m.turns = []subjects.Key{q.key}
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
	d, back, waits := h.elsewhere(m, in.Workflow, q)
	switch {
	case back:
		return d
	case waits:
		return h.refuseToWait(m, r, q)
	case errors.Is(err, errNoQuestion), isBusy(err):
		if d, back := h.early(m); back {
			return d
		}
		switch {
		case isBusy(err):
			return h.refuse(m, r, events.AnswerBusy, textBusy)
		case errors.Is(err, errTooManyTurns):
			return h.refuse(m, r, events.AnswerUnknown, textCrowded)
		}
		return h.refuse(m, r, events.AnswerUnknown, textUnknown)
	case errors.Is(err, query.ErrUnreadable):
		return h.refuse(m, r, events.AnswerClosed, textDamaged)
	case err != nil:
		return h.undecided(m, "the question cannot be looked up", err)
	case !m.Fresh():
		return inbound.Left()
	}
	return h.decide(ctx, m, r, q)
}

// unparsed makes a dead letter of a message that cannot be read. Whoever sent an answer hears of
// it, too.
func (h *Handlers) unparsed(m *message, err error) inbound.Disposition {
	if m.Private {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerInvalid)).Inc()
		h.tell(m, events.NewAnswerResult(events.AnswerInvalid, "", "The answer cannot be read: "+events.LogText(err)+"."))
	}
	return h.dead(m, deadletter.DecodeReason(err), err)
}

// foreign rejects an answer whose body belongs to somebody else than its subject. The sender's
// chat is that of the subject: rights are given by subject.
func (h *Handlers) foreign(m *message, in subjects.Inbound, r *events.ToolCallResponse) inbound.Disposition {
	v := events.NewAnswerResult(events.AnswerForbidden, r.ToolCallID, textForeign)
	ids := query.IDs(subjects.Key{App: in.App, Chat: in.Chat}, events.TurnID{App: r.App, Chat: r.Chat})
	sender := *r
	sender.App, sender.Chat = ids.App, ids.Chat
	h.judged(m, &sender, v)
	return inbound.Acked()
}

// decide stores an answer, if the question takes it, and does what follows.
func (h *Handlers) decide(ctx context.Context, m *message, r *events.ToolCallResponse, q *inquiry) inbound.Disposition {
	content, err := h.schemas.Check(q.ToolCall, r.Value)
	if content.SchemaErr != nil {
		h.lines.Log(m.Held, h.Logger, h.Now(), "schema", q.key.App, throttle.Several, slog.LevelError,
			"the schema of a question cannot be used any more", "question", throttle.Cut(q.ToolCallID), "err", events.LogText(content.SchemaErr))
	}
	if err == nil && q.Secret {
		content.Digest = ""
		if content.Data, err = answers.Seal(h.SecretKeys, q.key, q.ask, content.Data); err != nil {
			return h.unsealable(m, r, q, err)
		}
	}
	switch {
	case err != nil && q.Secret: // the error may name entries
		return h.refuse(m, r, events.AnswerInvalid, "The answer cannot be stored.")
	case err != nil:
		return h.refuse(m, r, events.AnswerInvalid, "The answer cannot be stored: "+events.LogText(err)+".")
	}
	v, err := h.Journal.Answer(m.Held, idempotency.Answer{
		Key: q.key, ID: q.ask, Lease: m.Lease, Trace: inbound.Trace(m.Header), NewOwner: (*taker)(h),
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
		Ack: h.acks(m, q.key, q, r.UserID),
	})
	switch {
	case errors.Is(err, idempotency.ErrRefused):
		return h.refuse(m, r, events.AnswerInvalid, fmt.Sprintf("The answer of %d bytes is too large to store: store the data elsewhere and answer with a reference.", len(content.Data)))
	case err != nil:
		return h.undecided(m, "the answer could not be stored", err)
	case v.Status == idempotency.Early:
		if d, back := h.early(m); back {
			return d
		}
	}
	h.judged(m, r, verdictOf(v, r.ToolCallID, q.Secret))
	if v.Status == idempotency.Accepted {
		h.olderNames(q, r.Value)
	}
	return h.follow(ctx, m, q.key, v)
}

// unsealable gives an answer back to a secret question that this worker has no keys for: a worker with keys has asked it.
func (h *Handlers) unsealable(m *message, r *events.ToolCallResponse, q *inquiry, err error) inbound.Disposition {
	h.often(m, slog.LevelWarn, "a secret answer cannot be sealed; it is offered to other workers", "", "seq", m.Lease.Seq, "err", events.LogText(err))
	if d, back := h.giveBack(m, h.rarely(m)); back {
		return d
	}
	return h.refuseToWait(m, r, q)
}

// follow does what the journal decided on a message that brings the end of a question.
func (h *Handlers) follow(ctx context.Context, m *message, key subjects.Key, v idempotency.AnswerDecision) inbound.Disposition {
	switch v.Action {
	case idempotency.Run, idempotency.EndTurn:
		return h.resumed(ctx, m, v.Decision)
	case idempotency.Requeue:
		return h.giveLeaseBack(m, v.Turn.Lease.Same(m.Lease))
	case idempotency.Leave:
		if v.Status != idempotency.Early {
			return inbound.Left()
		}
	case idempotency.Signalled:
		if d, copied := h.resumeCopy(ctx, m, key, nil); copied {
			return d
		}
	case idempotency.Done, idempotency.Duplicate, idempotency.Conflict:
	}
	return h.ended(ctx, m, v.Decision)
}

// undecided leaves a message of which it is not known what is stored. It comes back.
func (h *Handlers) undecided(m *message, what string, err error) inbound.Disposition {
	h.often(m, slog.LevelWarn, "the message comes back", what, "why", what, "seq", m.Lease.Seq, "delivery", m.Lease.Delivery, "err", events.LogText(err))
	return inbound.Left()
}

// olderNames tells the end of a question by the names that it had before: for frontends of
// workflows with compat.events. Nobody's screen depends on it, so it is published once, and not
// stored.
func (h *Handlers) olderNames(q *inquiry, value any) {
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
		h.Logger.Debug("an older event could not be published", "kind", kind, "question", q.ToolCallID, "err", events.LogText(err))
	}
}

// statusOf returns the status that an answer gives itself, "completed" if it gives none. It is a
// word that a component chose; a text, or anything of a secret answer, is not repeated.
func statusOf(q *inquiry, value any) string {
	const word = 32 // bytes
	object, _ := value.(map[string]any)
	if status, ok := object["status"].(string); ok && status != "" && len(status) <= word && !q.Secret {
		return status
	}
	return "completed"
}

// Bounds of erasing a message that was a secret answer.
const (
	// erasePause is how long after a failure it is tried again.
	erasePause = 5 * time.Second
	// eraseFor is how long a message is kept in the stream for that, by the server's clock; then it is
	// acknowledged.
	eraseFor = time.Hour
)

// Bounds of erasing messages of which it is not known whether they are secret. Of 64 places that are
// taken for ten seconds a tenant alone gets half: three messages a second, and 32 at once.
const (
	erasures   = 64
	erasureFor = 10 * time.Second
)

// erases reports whether a message that is acknowledged is overwritten in its stream's file as well, for
// which the server writes megabytes and syncs them. Each one is that answers a secret question. Of
// those that answer no question, or cannot be read, nobody knows: a tenant has some of them erased and no
// flood of them, behind which every other tenant would wait. What came sealed tells nobody anything.
func (h *Handlers) erases(m *message) bool {
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
	h.often(m, slog.LevelWarn, "an answer to no known question is acknowledged and not erased: the tenant sends too many", "", "seq", m.Lease.Seq)
	return false
}

// eraseAgain is how long after a failure to erase a message it is tried again, 0 if it is not.
func (h *Handlers) eraseAgain(m *message) time.Duration {
	if h.serverNow(m).Sub(m.Arrived) < eraseFor {
		return erasePause
	}
	return 0
}
