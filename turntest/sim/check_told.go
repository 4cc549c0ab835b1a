package sim

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// checkTold: what the sender of an answer learns is so at that time. That there is no such question is
// true only of one that was not asked before the answer was delivered, and only an answer that has waited
// for its question learns it.
func (w *world) checkTold(t *thread, v *events.Verdict) {
	m := t.m
	h := w.history(m.turn)
	q := h.questions[m.answer.id]
	if q == nil {
		q = &question{}
	}
	decided := func(as idempotency.Outcome) bool { return q.answer != nil && q.answer.Meta.Verdict == string(as) }
	so := true
	switch v.Code {
	case events.VerdictUnknown:
		asked := q.ask != nil && q.ask.Seq <= uint64(t.known) && !t.misled
		so = !asked && w.now.Sub(m.first) >= earlyFor-t.p.unsure
	case events.VerdictExpired:
		so = decided(idempotency.Expired) || q.ask != nil && !m.first.Before(expiryOf(q.ask))
	case events.VerdictCancelled:
		so = decided(idempotency.Cancelled)
	case events.VerdictAnswered:
		so = decided(idempotency.Answered)
	case events.VerdictClosed:
		so = len(h.responses) > 0
	case events.VerdictAccepted, events.VerdictReplayed, events.VerdictInvalid, events.VerdictForbidden: // see checkVerdict
	}
	if !so {
		w.violatef("%s: #%d was told that its answer to %s is %s, which was not so", m.turn.id.Turn, m.seq, m.answer.id, v.Code)
	}
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
		if reason == "" {
			continue
		}
		h := w.history(m.turn)
		if m.kind != events.KindStructuredOutputReady || h.claim == nil || h.claim.Meta.Fingerprint == m.fingerprint {
			w.violatef("%s: #%d (%s) became a dead letter: %s", m.turn.id.Turn, m.seq, m.kind, reason)
		}
	}
}
