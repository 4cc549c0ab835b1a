package sim

import (
	"slices"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// Invariants of questions: one record and one answer each, results that were true when they were sent, answers that
// reach a run once unless its effect allows more, and no parked turn whose answer is stored.

// end is the point of a tool after all its questions.
const end = "end"

// question is all that the journal holds of one question.
type question struct {
	ask, answer, taken, ack *idempotency.Record
}

// pass is a run that went past a question, or past all of them.
type pass struct {
	turn *turn
	id   string
	e    *entry
}

// senderResult is the result that the sender of an answer received.
type senderResult struct {
	code events.AnswerCode
	m    *message
}

func (w *world) note(m *message, v *events.AnswerResult) {
	w.tracef("  answer %s to %s of %s: %s", m.answer.value, m.answer.id, m.turn.id.Turn, v.Code)
	m.reported = true
	w.checkReports(w.active.t, v)
	w.results = append(w.results, senderResult{v.Code, m})
}

// count adds up how often turns were parked, continued and so on.
func (w *world) count(h *history, to map[string]int) {
	for _, p := range h.parks {
		to[p.Meta.Outcome]++
	}
	for _, r := range h.takeovers {
		if before := h.parks[r.Meta.Epoch-1]; before != nil && before.Meta.Outcome == "parked" {
			to["resumed"]++
		}
		if r.Meta.Nonce == h.owner(r.Meta.Epoch-1) {
			to["continued"]++
		}
	}
	for _, q := range h.questions {
		if q.answer != nil {
			to["decided "+q.answer.Meta.Outcome]++
		}
	}
}

// owner is the nonce of the run that holds an epoch.
func (h *history) owner(epoch int) string {
	if epoch == 1 {
		return h.claim.Meta.Nonce
	}
	for _, r := range h.takeovers {
		if r.Meta.Epoch == epoch {
			return r.Meta.Nonce
		}
	}
	return ""
}

// parked reports whether the newest epoch was let go.
func (h *history) parked() bool {
	p := h.parks[len(h.takeovers)+1]
	return p != nil && p.Meta.Outcome == "parked"
}

// checkEntry: a replay tool is entered again only after it has asked.
func (w *world) checkEntry(t *turn, e *entry) {
	all := w.history(t)
	h := all.of(e.call)
	if h.claim != nil {
		e.effect = h.claim.Meta.Effect
	}
	if h.claim != nil && e.epoch > h.claim.Meta.Epoch && e.effect == string(bindings.EffectReplay) && len(h.questions) == 0 {
		w.violatef("%s: entered again by epoch %d, and had asked nothing", t.id.Turn, e.epoch)
	}
}

// checkNotEnded: the tool of a turn is not entered if the turn had its response when the claim, whose reply was lost, was sent again.
func (w *world) checkNotEnded(e *entry) {
	t := w.turnOf(e.turn)
	if t == nil || w.active.t == nil {
		return
	}
	h := w.history(t)
	if h.claim != nil && len(h.responses) > 0 && h.responses[0].Seq <= w.active.t.refused[h.claim.Key] && !w.active.t.sawStaleRead {
		w.violatef("%s: entered by epoch %d, though its response was stored before its claim was refused", t.id.Turn, e.epoch)
	}
}

// checkPass: the code after an answer runs in two runs of a replay tool only while it is code
// before a question that was asked later, or the first of them had parked.
func (w *world) checkPass(t *turn, id string, e *entry) {
	if e.effect != string(bindings.EffectReplay) {
		return
	}
	all := w.history(t)
	h := all.of(e.call)
	for _, p := range w.passes {
		if p.turn != t || p.id != id || p.e == e || p.e.call != e.call {
			continue
		}
		if id == end {
			w.violatef("%s: the code after all questions ran in epoch %d and in epoch %d", t.id.Turn, p.e.epoch, e.epoch)
			continue
		}
		taken := h.questions[id].taken
		if taken == nil {
			w.violatef("%s: %s was passed by epoch %d and was never taken", t.id.Turn, id, p.e.epoch)
			continue
		}
		allowed := false
		for _, park := range h.parks {
			allowed = allowed || park.Meta.Outcome == "parked" && park.Meta.Nonce == taken.Meta.Nonce && park.Seq > taken.Seq
		}
		for _, q := range h.questions {
			allowed = allowed || q.ask != nil && q.ask.Seq > taken.Seq
		}
		if !allowed {
			w.violatef("%s: the code after the answer to %s ran in epoch %d and in epoch %d", t.id.Turn, id, p.e.epoch, e.epoch)
		}
	}
}

// checkStep: a step whose result is stored is not entered by a run that began later.
func (w *world) checkStep(a *asking, name string) {
	stored := w.store.keys[a.t.keyOf(a.e.call).Private("step", name)]
	if stored > a.t.from && stored < a.e.token {
		w.violatef("%s: step %s entered by epoch %d, though its result was stored before", a.t.id.Turn, name, a.e.epoch)
	}
}

// checkAsked checks the questions of a turn against the rules.
func (w *world) checkAsked(t *turn, h *history) {
	if len(t.asks()) == 0 {
		return
	}
	for id, q := range h.questions {
		if q.ask == nil {
			w.violatef("%s: %s was never asked and has an answer", t.id.Turn, id)
			continue
		}
		w.checkDecided(t, h, id, q)
	}
	if h.claim.Meta.Effect == string(bindings.EffectUnsafe) {
		for _, p := range h.parks {
			if p.Meta.Outcome == "parked" {
				w.violatef("%s: parked, though its tool is unsafe", t.id.Turn)
			}
		}
	}
	for _, v := range w.results {
		if v.m.turn == t {
			w.checkResult(t, h, v)
		}
	}
}

// endedBefore reports whether the turn had ended when it asked: a run may ask until it hears that. A cancel of a
// turn that has ended is not stored, but closes what is open.
func (h *history) endedBefore(ask *idempotency.Record) bool {
	return len(h.responses) > 0 && h.responses[0].Seq < ask.Seq
}

// stepEnded reports whether the step that has asked a question had ended when it was decided: then it is closed.
func (h *history) stepEnded(id string, answer *idempotency.Record) bool {
	call, _ := cutAskID(id)
	k := h.calls[call]
	return k != nil && k.response != nil && k.response.Seq < answer.Seq
}

// checkDecided: a decided question was asked before, fits, and is no longer displayed.
func (w *world) checkDecided(t *turn, h *history, id string, q *question) {
	script := t.scriptOf(id)
	switch {
	case q.answer == nil:
		if q.taken != nil && !script.impatient || q.ack != nil {
			w.violatef("%s: %s was taken or closed without an answer", t.id.Turn, id)
		}
		return
	case q.answer.Seq < q.ask.Seq:
		w.violatef("%s: %s was answered before it was asked", t.id.Turn, id)
	case string(q.answer.Data) == bad:
		w.violatef("%s: %s has an answer that does not fit", t.id.Turn, id)
	case q.ack == nil && !t.purged && h.cancel == nil: // the end of a cancelled turn closes its questions, too
		w.violatef("%s: %s is decided and stays displayed", t.id.Turn, id)
	case q.ack != nil && (q.ack.Seq < q.answer.Seq || q.ack.Meta.Outcome != q.answer.Meta.Outcome):
		w.violatef("%s: the ack of %s does not follow from its answer", t.id.Turn, id)
	case q.taken != nil && q.taken.Seq < q.answer.Seq && !script.impatient:
		w.violatef("%s: %s was taken before it was answered", t.id.Turn, id)
	case q.answer.Meta.Outcome == string(idempotency.Cancelled) && (h.cancel == nil && !h.endedBefore(q.ask) && !h.stepEnded(id, q.answer) || q.taken != nil && !script.impatient):
		w.violatef("%s: %s was cancelled without a cancel, or passed to the tool all the same", t.id.Turn, id)
	}
}

// checkResult: a sender that was notified that its answer counts sent the one that does.
func (w *world) checkResult(t *turn, h *history, v senderResult) {
	q, a := h.questions[v.m.answer.id], v.m.answer
	stands := q != nil && q.answer != nil && q.answer.Meta.Outcome == string(a.outcome) && string(q.answer.Data) == a.value
	switch v.code {
	case events.AnswerAccepted, events.AnswerReplayed:
		if !stands {
			w.violatef("%s: #%d was notified that its answer to %s is %s, which it is not", t.id.Turn, v.m.seq, a.id, v.code)
		}
	case events.AnswerConflict, events.AnswerCancelled:
		if stands {
			w.violatef("%s: #%d was notified that %s is %s, though its answer stands", t.id.Turn, v.m.seq, a.id, v.code)
		}
	case events.AnswerInvalid:
		if a.value != bad {
			w.violatef("%s: #%d was notified that its answer to %s does not fit", t.id.Turn, v.m.seq, a.id)
		}
	case events.AnswerForbidden:
		if v.m.pool == t.pool {
			w.violatef("%s: #%d was notified that %s is another's question", t.id.Turn, v.m.seq, a.id)
		}
	case events.AnswerExpired, events.AnswerUnknown, events.AnswerClosed, events.AnswerBusy:
	}
}

// settledAsked reports whether a message of a turn that asks may be settled although the turn
// continues: the turn is parked, or the message does not hold it, or not as far as the worker knew.
func (w *world) settledAsked(m *message, t *turn, h *history, known int) (fine bool) {
	switch {
	case len(t.asks()) == 0:
		return false
	case m.answer != nil && t.sawStaleRead > 1:
		return true // to deny that it is the lease takes two of them, and a sweep
	case h.newest.Seq != m.seq && m.answer != nil, h.parked():
		return true
	case h.claim == nil:
		return false
	}
	newest := h.claim
	if n := len(h.takeovers); n > 0 {
		newest = h.takeovers[n-1]
	}
	if int(newest.Seq) > known {
		return true // decided under an earlier delivery: an acknowledgement that came late
	}
	return h.newest.Seq != m.seq && slices.Contains([]string{events.KindToolCallResponse, events.KindExpire, events.KindCancel}, w.queue[h.newest.Seq-1].kind)
}
