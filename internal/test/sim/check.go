package sim

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// The checker compares the journal (history) with the ledger of the tools (entry, tool.go) at the end of a schedule,
// and checks a few invariants earlier, when a message is settled or left. check_*.go have the invariants of one subject
// each.

// checkSettled is called when the server settles a message: from now on only the holder
// of another message will end the turn.
func (w *world) checkSettled(m *message, by *thread, known int) {
	w.tracef("  #%d is settled", m.seq)
	if m.deferred {
		return
	}
	if over := w.checkMessageSettled(m, by); over {
		return
	}
	if m.kind == events.KindToolCallResponse && !m.reported {
		w.violatef("%s: answer #%d was settled, and its sender has no result", m.turn.id.Turn, m.seq)
	}
	if w.letters[m.seq] != "" {
		return
	}
	for _, t := range m.turnsOf() {
		w.checkHeld(t, m, known)
	}
}

// checkHeld: a message that is settled does not hold a turn.
func (w *world) checkHeld(t *turn, m *message, known int) {
	h := w.history(t)
	if len(h.responses) > 0 || w.settledAsked(m, t, &h, known) || t != m.turn && h.claim == nil {
		return
	}
	if t == m.turn && m.kind == events.KindCancel && h.cancel == nil {
		w.violatef("%s: cancel #%d was settled and is not stored", t.id.Turn, m.seq)
	}
	n := h.newest.Seq
	switch {
	case m.kind == events.KindResume:
		// A late acknowledgement of an earlier delivery, which found nothing to do, settles it
		// under one that took the turn over: the next sweep asks again.
		return
	case n != 0 && n != m.seq && (w.queue[n-1].purged || w.queue[n-1].kind == events.KindResume):
		return // the same
	case n != 0 && n != m.seq && (w.queue[n-1].deferred || w.letters[n] != ""):
		return // the message that holds the turn was deferred, or became a dead letter, under an earlier delivery: also the same
	case n == 0 && m.chat != nil && w.textOf(m.chat) != nil:
		return // the next sweep finds the text, and that what follows from it is missing
	case n == 0 || n == m.seq || !w.queue[n-1].lives():
		w.violatef("%s: #%d was settled before the turn had a response, and no other message holds it", t.id.Turn, m.seq)
	}
}

// checkLeft is called when a worker that lives leaves a message to be redelivered: it must not drop what
// a tool returned, nor the run of an unsafe tool, which no other worker may enter.
func (w *world) checkLeft(t *thread) {
	e, of := t.entry, t.m.turn
	if e != nil && of.by != nil { // perhaps of a correction
		of = w.turnOf(e.turn)
	}
	h := w.history(of)
	if e == nil || t.p.draining || len(h.responses) > 0 || h.cancel != nil || h.claim == nil {
		return
	}
	returned := of.script == nil && e.result != "" && e.result != "stopped"
	if unsafe := h.claim.Meta.Effect == string(bindings.EffectUnsafe); returned || unsafe {
		w.violatef("%s: the run of epoch %d (%s) ended %q without a response, and its worker lives", of.id.Turn, e.epoch, h.claim.Meta.Effect, e.result)
	}
}

// check checks the end of the schedule against the promise.
func (w *world) check() {
	for _, m := range w.queue {
		if !m.settled {
			w.violatef("#%d is lost: no worker holds it and no worker gets it", m.seq)
		}
	}
	w.checkLetters()
	w.checkMessages()
	w.checkCorrections()
	for _, t := range w.turns {
		h := w.history(t)
		if t.by != nil && h.claim == nil && !w.isPublished(t) {
			continue
		}
		var runs []*entry
		for _, e := range w.ledger {
			if e.turn == t.id.Turn && t.had(e.token) {
				runs = append(runs, e)
			}
		}
		w.checkRecords(t, &h)
		if h.claim != nil && len(h.responses) == 1 {
			w.checkAsked(t, &h)
			if t.program != nil {
				w.checkProgram(t, &h, runs)
			} else {
				w.checkRuns(t, &h, runs)
				w.checkResponse(t, &h, runs)
			}
			w.checkConflicts(t, &h, runs)
		}
	}
	w.checkContext()
}

// refusedForRoom reports whether a turn may have no response: its message found no room.
func (t *turn) refusedForRoom(w *world) bool {
	return slices.ContainsFunc(w.queue, func(m *message) bool { return m.turn == t && m.refusedForRoom })
}

// checkRecords: one response, after its call; epochs count up by one.
func (w *world) checkRecords(t *turn, h *history) {
	if h.claim == nil && len(h.responses) == 0 && t.refusedForRoom(w) {
		return
	}
	if n := len(h.responses); n != 1 {
		w.violatef("%s has %d responses", t.id.Turn, n)
	}
	if h.claim == nil {
		w.violatef("%s has no tool_call", t.id.Turn)
		return
	}
	last := h.claim
	for i, r := range h.takeovers {
		if r.Meta.Epoch != i+2 || r.Seq < last.Seq {
			w.violatef("%s: takeover %d has epoch %d after epoch %d", t.id.Turn, r.Seq, r.Meta.Epoch, last.Meta.Epoch)
		}
		last = r
	}
	for _, r := range h.responses {
		if r.Seq < h.claim.Seq {
			w.violatef("%s: response %d stands before tool_call %d", t.id.Turn, r.Seq, h.claim.Seq)
		}
	}
}

// checkRuns: how often the tool was entered, under which epochs.
func (w *world) checkRuns(t *turn, h *history, runs []*entry) {
	claim := h.claim.Meta
	limit := len(h.takeovers) + 1
	switch bindings.Effect(claim.Effect) {
	case bindings.EffectUnsafe:
		limit = 1
	case bindings.EffectReplay:
		if t.script == nil {
			limit = 1
		}
	case bindings.EffectKeyed, bindings.EffectIdempotent, bindings.EffectNone, bindings.EffectProgram:
	}
	if claim.Outcome != "" {
		limit = 0
	}
	if len(runs) > limit {
		w.violatef("%s: entered %d times, claim has effect %q, code %q, takeovers %d", t.id.Turn, len(runs), claim.Effect, claim.Outcome, len(h.takeovers))
	}
	for _, r := range h.takeovers {
		if !entered(runs, r.Meta.Epoch) {
			continue
		}
		if h.cancel != nil && h.cancel.Seq < r.Seq {
			w.violatef("%s: entered by epoch %d, which began after the cancel", t.id.Turn, r.Meta.Epoch)
		}
		if h.responses[0].Seq < r.Seq {
			w.violatef("%s: entered by epoch %d, which began after the response", t.id.Turn, r.Meta.Epoch)
		}
	}
	named := toolOf(h.claim)
	for i, e := range runs {
		if e.tool != named {
			w.violatef("%s: claimed for %s (%s), and epoch %d entered %s", t.id.Turn, named, claim.Effect, e.epoch, e.tool)
		}
		if e.epoch > 1 && e.here == bindings.EffectUnsafe {
			w.violatef("%s: %s was entered again by epoch %d, and is unsafe by the manifests of its worker", t.id.Turn, e.tool, e.epoch)
		}
		if e.key != runs[0].key {
			w.violatef("%s: runs of one turn have different idempotency keys", t.id.Turn)
		}
		for _, other := range runs[:i] {
			if (e.epoch > other.epoch) != (e.token > other.token) || e.epoch == other.epoch {
				w.violatef("%s: epoch %d ran with fencing token %d, epoch %d with %d", t.id.Turn, other.epoch, other.token, e.epoch, e.token)
			}
		}
	}
}

// toolOf is the tool that a claim names.
func toolOf(claim *idempotency.Record) string {
	var call struct {
		Data struct {
			Tool string `json:"tool_name"`
		} `json:"data"`
	}
	_ = json.Unmarshal(claim.Data, &call) // what cannot be read names none
	return call.Data.Tool
}

func entered(runs []*entry, epoch int) bool {
	for _, e := range runs {
		if e.epoch == epoch {
			return true
		}
	}
	return false
}

// checkResponse: the response matches what happened.
func (w *world) checkResponse(t *turn, h *history, runs []*entry) {
	r, claim := h.responses[0], h.claim.Meta
	code := r.code()
	if claim.Outcome != "" {
		if code != claim.Outcome {
			w.violatef("%s: claimed with code %s, ended with %s", t.id.Turn, claim.Outcome, code)
		}
		return
	}
	switch code {
	case events.StatusOK:
		var value struct {
			Run *int `json:"run"`
		}
		if err := json.Unmarshal(r.Body.Payload, &value); err != nil || value.Run == nil || *value.Run >= len(w.ledger) {
			w.violatef("%s: is ok and has no result of a run: %.80s", t.id.Turn, r.Body.Payload)
			return
		}
		if e := w.ledger[*value.Run]; e.turn != t.id.Turn || e.result != events.StatusOK || !e.stored(r.Meta) {
			w.violatef("%s: is ok with run %d, which was epoch %d of %s and ended %q", t.id.Turn, *value.Run, e.epoch, e.turn, e.result)
		}
	case string(events.CodeUserError):
		if !ended(runs, code, r.Meta) {
			w.violatef("%s: is %s, and no run of epoch %d ended so", t.id.Turn, code, r.Meta.Epoch)
		}
	case string(events.CodeInterrupted):
		if !w.mayInterrupt(t, h) {
			w.violatef("%s: interrupted (%s), though nothing happened before to delivery %s, which claimed it", t.id.Turn, claim.Effect, claim.Lease)
		}
	case string(events.CodeUnknownTool):
		if !w.endsAs(events.CodeUnknownTool, h) {
			w.violatef("%s: ended with %s by %s, which has its tool or does not know its workflow", t.id.Turn, code, r.Meta.Owner)
		}
	case string(events.CodeToolError):
		refused := claim.Effect == string(bindings.EffectUnsafe) // its worker keeps another one in memory
		if t.script == nil || !t.script.fickle && !refused {
			w.violatef("%s: ended with %s, though its tool asks the same whenever it runs", t.id.Turn, code)
		}
	case string(events.CodeCancelled):
		if h.cancel == nil {
			w.violatef("%s: cancelled without a cancel", t.id.Turn)
		}
	default:
		w.violatef("%s: ended with %s, which nothing here can cause", t.id.Turn, code)
	}
}

// mayInterrupt reports whether a turn may have ended as interrupted: its tool must not be entered
// again, and a delivery that held the turn met a fault before.
func (w *world) mayInterrupt(t *turn, h *history) bool {
	if w.endsAs(events.CodeInterrupted, h) {
		return true
	}
	response := h.responses[0].Record
	hit := w.hitBefore(h.claim.Meta.Lease, response) || w.lostLease(h)
	switch bindings.Effect(h.claim.Meta.Effect) {
	case bindings.EffectUnsafe:
		return hit
	case bindings.EffectReplay:
		for _, r := range h.takeovers {
			hit = hit || t.script != nil && w.hitBefore(r.Meta.Lease, response)
		}
		// A read can hide a question from the run that resumes, and a run that has left a question
		// waits for it all the same.
		return hit || t.sawStaleRead > 0 || t.left
	case bindings.EffectKeyed, bindings.EffectIdempotent, bindings.EffectNone, bindings.EffectProgram:
	}
	return len(h.takeovers) >= maxTakeovers
}

// lostLease reports whether the acknowledgement of an earlier delivery, which was deferred, took the message from
// the delivery that claimed the turn, and another message than its copy took the turn over or ended it.
func (w *world) lostLease(h *history) bool {
	n := h.claim.Meta.Lease.Seq
	if n == 0 {
		return false
	}
	by := w.store.by[h.responses[0].Meta.Nonce]
	if len(h.takeovers) > 0 {
		by = h.takeovers[0].Meta.Lease.Seq
	}
	m := w.queue[n-1]
	return m.deferred && m.late && by != 0 && by != n && !slices.Contains(m.copies, w.queue[by-1])
}

func ended(runs []*entry, result string, by idempotency.Meta) bool {
	for _, e := range runs {
		if e.result == result && e.stored(by) {
			return true
		}
	}
	return false
}

// stored reports whether the run has written a record. One that was woken
// continues as the next epoch.
func (e *entry) stored(by idempotency.Meta) bool {
	if e.nonce != "" {
		return e.nonce == by.Nonce
	}
	return e.epoch == by.Epoch
}

// checkConflicts: data that lost the key was never run and is a dead letter.
func (w *world) checkConflicts(t *turn, h *history, runs []*entry) {
	won := h.claim.Meta.Fingerprint
	if won == "" {
		return // claimed by a cancel, which carries no data
	}
	for _, m := range w.queue {
		if m.turn != t || m.kind != events.KindStructuredOutputReady || m.fingerprint == won || m.purged || m.deferred {
			continue
		}
		for _, e := range runs {
			if e.data == strconv.Itoa(m.data) {
				w.violatef("%s: data %d was run under a key that other data had claimed", t.id.Turn, m.data)
			}
		}
		if w.letters[m.seq] == "" {
			w.violatef("%s: #%d has other data than the claim and is not a dead letter", t.id.Turn, m.seq)
		}
	}
}
