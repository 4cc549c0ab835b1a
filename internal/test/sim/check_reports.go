package sim

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// checkReports: what the sender of an answer learns is so at that time. That there is no such question is
// true only of one that was not asked before the answer was delivered, and only an answer that has waited
// for its question learns it. One that was delivered before the turn asked again under a key that is used
// again, or whose reads were stale, may hear of the question of the turn before.
func (w *world) checkReports(t *thread, v *events.AnswerResult) {
	h := w.history(t.m.turn)
	so := w.reported(t, v, &h)
	if q := h.questions[t.m.answer.id]; q == nil || q.ask == nil || q.ask.Seq > uint64(t.known) || t.sawStaleRead {
		for _, former := range w.former {
			if f := w.history(former); former.key == t.m.turn.key && v.Code != events.AnswerUnknown {
				so = so || w.reported(t, v, &f)
			}
		}
	}
	if !so {
		w.violatef("%s: #%d was notified that its answer to %s is %s, which was not so", t.m.turn.id.Turn, t.m.seq, t.m.answer.id, v.Code)
	}
}

// reported reports whether a result is true of a generation of the turn.
func (w *world) reported(t *thread, v *events.AnswerResult, h *history) bool {
	m, q := t.m, h.questions[t.m.answer.id]
	if q == nil {
		q = &question{}
	}
	decided := func(as idempotency.Outcome) bool { return q.answer != nil && q.answer.Meta.Outcome == string(as) }
	switch v.Code {
	case events.AnswerUnknown:
		asked := q.ask != nil && q.ask.Seq <= uint64(t.known) && !t.sawStaleRead
		return !asked && w.now.Sub(m.first) >= earlyFor-t.p.unsure || t.noRoom
	case events.AnswerExpired:
		return decided(idempotency.Expired) || q.ask != nil && !m.first.Before(expiryOf(q.ask))
	case events.AnswerCancelled:
		return decided(idempotency.Cancelled)
	case events.AnswerConflict:
		return decided(idempotency.Answered)
	case events.AnswerClosed:
		call, _ := cutAskID(m.answer.id)
		k := h.calls[call]
		return len(h.responses) > 0 || k != nil && k.response != nil
	case events.AnswerBusy: // no chat is searched here
		return false
	case events.AnswerAccepted, events.AnswerReplayed, events.AnswerInvalid, events.AnswerForbidden: // see checkResult
	}
	return true
}

// expiryOf is when the time to answer a question is over.
func expiryOf(ask *idempotency.Record) time.Time {
	var e struct {
		Data struct {
			Answer struct {
				ExpiresAt time.Time `json:"expires_at"`
			} `json:"answer"`
		} `json:"data"`
	}
	_ = json.Unmarshal(ask.Data, &e) // one that cannot be read never ends
	return e.Data.Answer.ExpiresAt
}

// checkLetters: only data that lost its turn key becomes a dead letter. Answers, expiries, cancels and
// resumes never do, however often they are delivered.
func (w *world) checkLetters() {
	for _, m := range w.queue {
		reason := w.letters[m.seq]
		if reason == "" || m.refusedForRoom {
			continue
		}
		if m.turn.by != nil && w.mayConflict(m.turn.by, m, reason) || m.chat != nil && w.mayConflict(m.chat, m, reason) {
			continue
		}
		h := w.history(m.turn)
		if m.kind != events.KindStructuredOutputReady || h.claim == nil || h.claim.Meta.Fingerprint == m.fingerprint {
			w.violatef("%s: #%d (%s) became a dead letter: %s", m.turn.id.Turn, m.seq, m.kind, reason)
		}
	}
}
