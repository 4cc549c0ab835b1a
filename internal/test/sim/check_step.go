package sim

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

// Invariants of the calls of programs, each by itself: how often its tool is entered, by which owner of the turn, and how it ends.

// checkStepEntry is called when the tool of a step is entered.
func (w *world) checkStepEntry(t *turn, c *call, e *entry) {
	h := w.history(t)
	k := h.calls[c.id]
	switch {
	case k == nil || k.call == nil:
		w.violatef("%s#%s: entered by epoch %d, and its call is not stored", t.id.Turn, c.id, e.epoch)
		return
	case k.response != nil && k.response.Seq < e.token:
		w.violatef("%s#%s: entered by epoch %d, though its response was stored before", t.id.Turn, c.id, e.epoch)
	case k.response != nil && k.response.Seq <= w.active.t.refused[k.call.Key] && !w.active.t.sawStaleRead:
		w.violatef("%s#%s: entered by epoch %d, though its response was stored before its call was refused", t.id.Turn, c.id, e.epoch)
	}
	if !h.owns(e) {
		w.violatef("%s#%s: epoch %d ran with fencing token %d, which is not the record by which it owns the turn", t.id.Turn, c.id, e.epoch, e.token)
	}
	w.checkDecidedBefore(t, &h, c, e)
}

// owns reports whether the fencing token of a run is the sequence of the record by which its epoch owns the turn.
func (h *history) owns(e *entry) bool {
	if e.epoch == 1 {
		return h.claim != nil && h.claim.Seq == e.token
	}
	for _, r := range h.takeovers {
		if r.Seq == e.token {
			return r.Meta.Epoch == e.epoch
		}
	}
	return false
}

// checkDecidedBefore: after a park only a step is entered again one of whose questions is decided.
func (w *world) checkDecidedBefore(t *turn, h *history, c *call, e *entry) {
	park := h.parks[e.epoch-1]
	if park == nil || park.Meta.Outcome != "parked" {
		return
	}
	of := func(id string) bool { call, _ := cutAskID(id); return call == c.id }
	decided := false
	for id, q := range h.questions {
		decided = decided || of(id) && q.answer != nil
	}
	if slices.ContainsFunc(t.waitsFor(park), of) && !decided {
		w.violatef("%s#%s: entered by epoch %d, and still waits for people", t.id.Turn, c.id, e.epoch)
	}
}

// checkClosed: a call has a response before the turn has one. Only one that was stored while the turn was being ended, by a worker that
// did not end it, may have none, or a later one.
func (w *world) checkClosed(t *turn, h *history, c *call, k *called) {
	end := h.responses[0]
	if k.response != nil && k.response.Seq < k.call.Seq {
		w.violatef("%s#%s: response %d stands before its call", t.id.Turn, c.id, k.response.Seq)
	}
	if k.response != nil && k.response.Seq < end.Seq {
		return
	}
	read := w.store.ends[end.Meta.Nonce]
	if k.call.Seq > read.records && k.call.Meta.Nonce != end.Meta.Nonce || read.stale {
		return
	}
	w.violatef("%s#%s: call %d has no response before the response of the turn, %d", t.id.Turn, c.id, k.call.Seq, end.Seq)
}

// checkStepRuns: how often the tool of a call was entered, and with what.
func (w *world) checkStepRuns(t *turn, h *history, c *call, k *called, runs []*entry) {
	effect := bindings.Effect(k.call.Meta.Effect)
	limit := len(runs)
	if effect == bindings.EffectUnsafe || effect == bindings.EffectReplay && c.script == nil {
		limit = 1
	}
	if len(runs) > limit {
		w.violatef("%s#%s: entered %d times, its call has effect %q", t.id.Turn, c.id, len(runs), effect)
	}
	args := argumentsOf(k.call)
	for i, e := range runs {
		if e.tool != toolOf(k.call) {
			w.violatef("%s#%s: called for %s, and epoch %d entered %s", t.id.Turn, c.id, toolOf(k.call), e.epoch, e.tool)
		}
		if e.epoch > k.call.Meta.Epoch && e.here == bindings.EffectUnsafe {
			w.violatef("%s#%s: %s was entered again by epoch %d, and is unsafe by the manifests of its worker", t.id.Turn, c.id, e.tool, e.epoch)
		}
		if given := tree(events.JSONOf(e.args)); !reflect.DeepEqual(given, any(args)) {
			w.violatef("%s#%s: epoch %d entered it with %v, it was called with %v", t.id.Turn, c.id, e.epoch, given, args)
		}
		if h.cancel != nil && e.epoch > 1 && e.token > h.cancel.Seq {
			w.violatef("%s#%s: entered by epoch %d, which began after the cancel", t.id.Turn, c.id, e.epoch)
		}
		for _, other := range runs[:i] {
			if e.nonce == other.nonce || e.key != other.key {
				w.violatef("%s#%s: entered twice by epoch %d, or with different idempotency keys", t.id.Turn, c.id, e.epoch)
			}
		}
	}
	w.checkStepEnd(t, h, c, k, runs)
}

// checkStepEnd: the response of a call matches what happened.
func (w *world) checkStepEnd(t *turn, h *history, c *call, k *called, runs []*entry) {
	if k.response == nil || c.nested != nil {
		return
	}
	r := k.response
	switch code := r.code(); code {
	case events.StatusOK:
		var value struct {
			Run *int `json:"run"`
		}
		if err := json.Unmarshal(r.Body.Payload, &value); err != nil || value.Run == nil || *value.Run >= len(w.ledger) {
			w.violatef("%s#%s: is ok and has no result of a run: %.80s", t.id.Turn, c.id, r.Body.Payload)
		} else if e := w.ledger[*value.Run]; e.turn != t.id.Turn || e.call != c.id || e.result != events.StatusOK || !e.stored(r.Meta) {
			w.violatef("%s#%s: is ok with run %d, which was epoch %d of %s#%s and ended %q", t.id.Turn, c.id, *value.Run, e.epoch, e.turn, e.call, e.result)
		}
	case string(events.CodeUserError):
		if !ended(runs, code, r.Meta) {
			w.violatef("%s#%s: is %s, and no run of epoch %d ended so", t.id.Turn, c.id, code, r.Meta.Epoch)
		}
	case string(events.CodeCancelled):
		if h.cancel == nil && !t.inRace(c) && !t.outlived(h, c) {
			w.violatef("%s#%s: cancelled without a cancel", t.id.Turn, c.id)
		}
	case string(events.CodeInterrupted):
		if !w.mayInterruptStep(t, h, r) {
			w.violatef("%s#%s: interrupted, though nothing happened to the deliveries that held its turn", t.id.Turn, c.id)
		}
	case string(events.CodeToolError):
		if c.script == nil {
			w.violatef("%s#%s: ended with %s", t.id.Turn, c.id, code)
		}
	case string(events.CodeUnknownTool), string(events.CodeBadArgs):
		if !w.deployed() {
			w.violatef("%s#%s: ended with %s, and all workers have its tool", t.id.Turn, c.id, code)
		}
	default:
		w.violatef("%s#%s: ended with %s, which nothing here can cause", t.id.Turn, c.id, code)
	}
}

// inRace reports whether a call is one of a race.
func (t *turn) inRace(c *call) bool {
	return slices.ContainsFunc(t.program.steps, func(s *step) bool {
		return s.race && slices.ContainsFunc(s.calls, func(of *call) bool { return of == c || slices.Contains(of.nested.all(), c) })
	})
}

// outlived reports whether a call of a nested program was ended after the call that the program is: an owner that has not entered it again has
// ended that one without it.
func (t *turn) outlived(h *history, c *call) bool {
	i := strings.LastIndex(c.id, "#")
	if i < 0 {
		return false
	}
	outer := h.responseOf(t.callNamed(c.id[:i]))
	return outer != nil && outer.Seq < h.responseOf(c).Seq
}

// mayInterruptStep reports whether a call may have ended as interrupted: a delivery that held the turn met a fault before, or its tool
// continued without an answer.
func (w *world) mayInterruptStep(t *turn, h *history, response *response) bool {
	hit := w.hitBefore(h.claim.Meta.Lease, response.Record) || w.lostLease(h)
	for _, r := range h.takeovers {
		hit = hit || w.hitBefore(r.Meta.Lease, response.Record)
	}
	return hit || t.left || t.sawStaleRead > 0 || w.deployed() // the manifests of its worker may be stricter
}

// deployed reports whether a worker had other manifests than the usual ones.
func (w *world) deployed() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool {
		return slices.ContainsFunc(p.had, func(m manifest) bool { return m.name != w.sim.manifests[0].name })
	})
}

// checkParkedSteps: while a turn is parked, no unsafe step of it is open: it could not be entered again.
func (w *world) checkParkedSteps(t *turn, h *history) {
	for _, p := range h.parks {
		for _, c := range t.calls {
			k := h.calls[c.id]
			if p.Meta.Outcome != "parked" || k == nil || k.call == nil || k.call.Meta.Effect != string(bindings.EffectUnsafe) || k.call.Meta.Nonce != p.Meta.Nonce {
				continue
			}
			if k.call.Seq < p.Seq && (k.response == nil || k.response.Seq > p.Seq) {
				w.violatef("%s#%s: open while the turn was parked, and its tool is unsafe", t.id.Turn, c.id)
			}
		}
	}
}
