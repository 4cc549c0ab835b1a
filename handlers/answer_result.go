package handlers

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// The result of an answer or an expiry, and who receives it: the subject that the message names, and, for an answer that
// was not accepted, its chat.

// Texts of results. They hold no part of the answer.
const (
	textUnknown   = "There is no such question in this chat."
	textBusy      = "The chat has too many turns to search it for the question now, and the tenant has used up its searches: send run_id with the answer, or send the answer again later."
	textTooMany   = "Too many turns of this chat have asked a question with that number to find this one: send run_id with the answer."
	textForeign   = "The answer names another tenant, chat or workflow than the subject that it was published on."
	textWorkflow  = "The question belongs to another workflow than the subject that the message was published on: publish it to the subject that the question names."
	textPool      = "The question belongs to another pool of workers than the subject that the message was published on: publish it to the subject that the question names."
	textNotUsers  = "The question is for another user."
	textAccepted  = "The answer is accepted."
	textReplayed  = "The same answer was accepted before."
	textAnswered  = "The question was answered before, with another answer."
	textDecided   = "The question was answered before."
	textExpired   = "The time to answer is over."
	textCancelled = "The question is closed: the turn was cancelled, or the call that asked has ended."
	textClosed    = "The turn, or the call that asked, ended with the question open."
	textNoRoom    = "No worker that received the answer has the workflow of the question, and too many messages wait for one: send the answer again later."
	textDamaged   = "The question cannot be read: the turn cannot continue with an answer."
)

// answerResult returns the result for the sender of an answer, from the decision of the journal. For a secret question
// it does not reveal whether the answer equals the accepted one.
func answerResult(v idempotency.AnswerDecision, id string, secret bool) events.AnswerResult {
	switch v.Status {
	case idempotency.Accepted:
		return events.NewAnswerResult(events.AnswerAccepted, id, textAccepted)
	case idempotency.Replayed:
		return events.NewAnswerResult(events.AnswerReplayed, id, textReplayed)
	case idempotency.TooLate:
		switch v.By {
		case idempotency.Answered:
			if secret {
				return events.NewAnswerResult(events.AnswerConflict, id, textDecided)
			}
			return events.NewAnswerResult(events.AnswerConflict, id, textAnswered)
		case idempotency.Expired:
			return events.NewAnswerResult(events.AnswerExpired, id, textExpired)
		case idempotency.Cancelled:
			return events.NewAnswerResult(events.AnswerCancelled, id, textCancelled)
		case idempotency.Open:
		}
	case idempotency.Invalid:
		var why *answers.InvalidError
		if errors.As(v.Reason, &why) {
			r := events.NewAnswerResult(why.Code, id, why.Text)
			if len(why.Violations) > 0 {
				r.Errors = events.JSONOf(why.Violations)
			}
			return r
		}
	case idempotency.Early:
		return events.NewAnswerResult(events.AnswerUnknown, id, textUnknown)
	case idempotency.Closed:
	}
	return events.NewAnswerResult(events.AnswerClosed, id, textClosed)
}

// sendResult sends a result to the subject that the message names for it, if it names one that the worker may publish
// to.
func (h *Handlers) sendResult(m *message, v events.AnswerResult) {
	subject := m.Header.Get(subjects.HeaderReply)
	app, _ := h.Space.InSender(m.Subject)
	if subject == "" || !h.Space.IsAnswerReply(subject, app) && !h.MayReply(subject, m.Subject) {
		return
	}
	data, err := events.EncodeAnswerResult(&v)
	if err == nil {
		err = h.Live(subject, data)
	}
	if err != nil {
		h.Logger.Debug("the result of an answer could not be sent", "seq", m.Lease.Seq, "code", string(v.Code), "err", events.LogText(err))
	}
}

// reportResult reports the result of an answer to its sender: on the subject that it names and, if it was not accepted, in
// the chat that it was sent from. The chat of the question receives the acks of accepted answers only.
func (h *Handlers) reportResult(m *message, r *events.ToolCallResponse, v events.AnswerResult) {
	h.Metrics.Answers.WithLabelValues(string(v.Code)).Inc()
	h.sendResult(m, v)
	if v.OK() {
		return
	}
	h.logThrottled(m, slog.LevelInfo, "answer not accepted", string(v.Code), "code", string(v.Code), "chat", throttle.Cut(r.Chat), "question", throttle.Cut(r.ToolCallID), "seq", m.Lease.Seq)
	event, err := events.Encode(events.KindToolCallRejected, v.Rejected(r), h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(r.App, r.Chat, events.KindToolCallRejected), event)
	}
	if err != nil {
		h.Logger.Debug("a rejection could not be published", "seq", m.Lease.Seq, "err", events.LogText(err))
	}
}

// refuse rejects an answer before anything of it is stored.
func (h *Handlers) refuse(m *message, r *events.ToolCallResponse, code events.AnswerCode, text string) inbound.Disposition {
	h.reportResult(m, r, events.NewAnswerResult(code, r.ToolCallID, text))
	return inbound.Acked()
}

// refuseUnlessAccepted refuses an answer that has to wait for another worker and cannot be requeued, unless it was
// accepted before: then it continues its turn, which it may hold already, or a later delivery of it.
func (h *Handlers) refuseUnlessAccepted(m *message, r *events.ToolCallResponse, q *storedQuestion) inbound.Disposition {
	leases, err := h.turnLeases(m)
	if d := h.ackUnlessLaterLease(m, leases, err); d.Do != inbound.Ack {
		return d
	}
	accepted := slices.ContainsFunc(leases, m.Lease.Same)
	if !accepted && !h.onlyDelivery(m) {
		if accepted, err = h.Journal.AnswerStored(m.Held, q.key, q.ask, m.Lease); err != nil {
			return h.redeliver(m, "it may have been accepted before", err)
		}
	}
	if accepted {
		return h.requeueAlways(m, h.ageBasedDelay(m))
	}
	return h.refuse(m, r, events.AnswerUnknown, textNoRoom)
}

// MayReply reports whether a reply may be sent to a subject that the sender of a message has chosen, see
// [subjects.Space.MayReply]. A refused one is counted and, once a minute at most, logged with the subject of the message.
func (h *Handlers) MayReply(reply, from string) bool {
	if h.Space.MayReply(reply) {
		return true
	}
	h.Metrics.RepliesRefused.Inc()
	h.lines.Log(context.Background(), h.Logger, h.Now(), "reply", "", 1, slog.LevelWarn,
		"reply subject not allowed: it is not an inbox, and nothing is sent there; use an inbox, or add its prefix to the reply prefixes of the workers",
		"reply", throttle.Cut(reply), "subject", throttle.Cut(from))
	return false
}
