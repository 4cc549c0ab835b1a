package sim

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/oneturn/oneturn/events"
)

// Invariants of how programs end: code and payload are what the stored responses of their calls contain.

// checkProgramEnd: the response of the turn is what the stored responses of its calls contain, unless the turn was ended from outside.
func (w *world) checkProgramEnd(t *turn, h *history) {
	end := h.responses[0]
	for _, c := range t.calls {
		if r := h.responseOf(c); r != nil && r.Seq > end.Seq && !w.calledUnseen(h, c) {
			w.violatef("%s#%s: response %d stands after the response of the turn", t.id.Turn, c.id, r.Seq)
		}
	}
	halt, partial := t.program.halt(h, end.Seq)
	switch code := end.code(); code {
	case events.StatusOK:
		if halt != nil || end.Body.Success == partial {
			w.violatef("%s: is ok (success: %t), halted: %t, with failures: %t", t.id.Turn, end.Body.Success, halt != nil, partial)
		}
		w.checkPayload(t, h)
	case string(events.CodeCancelled):
		if h.cancel == nil {
			w.violatef("%s: cancelled without a cancel", t.id.Turn)
		}
	case string(events.CodeInterrupted):
		if r := h.failureOf(halt); r == code || len(h.takeovers) >= maxTakeovers || w.deployed() {
			return
		}
		w.violatef("%s: interrupted, and no step of it was", t.id.Turn)
	case string(events.CodeUnknownTool), string(events.CodeValidationFailed):
		if r := h.failureOf(halt); r != code && !w.deployed() {
			w.violatef("%s: ended with %s, and all workers have its tool", t.id.Turn, code)
		}
	default:
		if r := h.failureOf(halt); r != code {
			w.violatef("%s: ended with %s, and its steps with %s", t.id.Turn, code, r)
		}
		w.checkPayload(t, h)
	}
}

// calledUnseen reports whether a call may have been stored after the worker that ended the turn had read its steps.
func (w *world) calledUnseen(h *history, c *call) bool {
	read := w.store.ends[h.responses[0].Meta.Nonce]
	return h.calls[c.id].call.Seq > read.records || read.stale
}

// failureOf is the code with which a call has failed, "" for none.
func (h *history) failureOf(c *call) string {
	if c == nil || h.responseOf(c) == nil {
		return ""
	}
	r := h.responseOf(c)
	if r.Body.Code == "" {
		return string(events.CodeToolError)
	}
	return r.code()
}

// halt is the call that halts the program, by what is stored of its calls; nil for none. Partial: a failure was tolerated.
func (p *program) halt(h *history, until uint64) (halt *call, partial bool) {
	for _, s := range p.steps {
		if s.winner(h) != nil {
			continue
		}
		for _, c := range s.calls {
			if r := h.responseOf(c); r == nil || r.Seq > until || !r.Body.Success {
				if !s.tolerated {
					return c, partial
				}
				partial = true
			}
		}
	}
	return nil, partial
}

// checkPayload: the payload of a program that has ended lists its calls as their responses have them.
func (w *world) checkPayload(t *turn, h *history) {
	var payload struct {
		Results []result `json:"results"`
		Steps   []result `json:"steps"`
	}
	if err := json.Unmarshal(h.responses[0].Body.Payload, &payload); err != nil {
		w.violatef("%s: the payload cannot be read: %v", t.id.Turn, err)
	}
	listed := slices.Concat(payload.Results, payload.Steps)
	for _, r := range payload.Steps {
		listed = append(listed, r.Children...)
	}
	for _, s := range t.program.steps {
		for _, c := range s.calls {
			i := slices.IndexFunc(listed, func(r result) bool { return r.Call == c.id || r.ID == c.id })
			r := h.responseOf(c)
			switch ok := r != nil && r.Body.Success; {
			case i < 0 && (ok || t.program.kind != kindPlan):
				w.violatef("%s#%s: is not in the payload", t.id.Turn, c.id)
			case i < 0, r != nil && w.calledUnseen(h, c):
			case ok != (listed[i].Success || listed[i].Status == "success"):
				w.violatef("%s#%s: success %t, and the payload has %+v", t.id.Turn, c.id, ok, listed[i])
			case ok && !reflect.DeepEqual(listed[i].Output, tree(r.Body.Payload)):
				w.violatef("%s#%s: the payload has output %v, its response %s", t.id.Turn, c.id, listed[i].Output, r.Body.Payload)
			}
		}
	}
}

// result is a call in the payload of a program.
type result struct {
	Call     string   `json:"call"`
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Success  bool     `json:"success"`
	Output   any      `json:"output"`
	Children []result `json:"children"`
}
