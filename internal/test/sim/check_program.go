package sim

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
)

// Invariants of programs: in which order their calls are made, and with which arguments. What a program has to do follows from what
// is stored of its calls, here as in the product, but by separate code.

// checkProgram checks a turn that is a program, at the end.
func (w *world) checkProgram(t *turn, h *history, runs []*entry) {
	if h.claim.Meta.Outcome != "" {
		if len(h.calls) > 0 {
			w.violatef("%s: claimed with code %s, and calls of its program are stored", t.id.Turn, h.claim.Meta.Outcome)
		}
		w.checkResponse(t, h, runs)
		return
	}
	w.checkCalls(t, h, t.program, h.program)
	for _, c := range t.calls {
		if k := h.calls[c.id]; k != nil && k.call != nil {
			w.checkClosed(t, h, c, k)
			w.checkStepRuns(t, h, c, k, slices.DeleteFunc(slices.Clone(runs), func(e *entry) bool { return e.call != c.id }))
		}
	}
	w.checkParkedSteps(t, h)
	w.checkProgramEnd(t, h)
}

// checkCalls: no call precedes the record of its program, or the end of the steps before it, and its arguments are what the
// responses of these contain.
func (w *world) checkCalls(t *turn, h *history, p *program, stored *idempotency.Record) {
	for i, s := range p.steps {
		for _, c := range s.calls {
			k := h.calls[c.id]
			if k == nil || k.call == nil {
				continue
			}
			if stored == nil || stored.Seq > k.call.Seq {
				w.violatef("%s#%s: call %d stands before the program", t.id.Turn, c.id, k.call.Seq)
			}
			for _, before := range p.steps[:i] {
				if why := before.isOver(h, k.call.Seq); why != "" {
					w.violatef("%s#%s: call %d was stored, and step %s %s", t.id.Turn, c.id, k.call.Seq, before.id, why)
				}
			}
			w.checkArguments(t, h, c, k)
			if c.nested != nil {
				w.checkCalls(t, h, c.nested, k.program)
			}
		}
	}
}

// isOver returns why a step was not over, or why the program has halted at it, when a record was stored; "" if the program continued.
func (s *step) isOver(h *history, seq uint64) string {
	failed := false
	for _, c := range s.calls {
		r := h.responseOf(c)
		switch {
		case s.winner(h) != nil:
		case r == nil || r.Seq > seq:
			return "was not over"
		}
		failed = failed || r == nil || !r.Body.Success
	}
	switch winner := s.winner(h); {
	case winner != nil && h.responseOf(winner).Seq > seq:
		return "had no winner"
	case winner != nil, s.tolerated, !failed:
		return ""
	}
	return "has halted the program"
}

// responseOf is the stored response of a call, nil if there is none.
func (h *history) responseOf(c *call) *response {
	if k := h.calls[c.id]; k != nil {
		return k.response
	}
	return nil
}

// winner is the call of a race whose success was stored first.
func (s *step) winner(h *history) (first *call) {
	for _, c := range s.calls {
		if r := h.responseOf(c); s.race && r != nil && r.Body.Success && (first == nil || r.Seq < h.responseOf(first).Seq) {
			first = c
		}
	}
	return first
}

// value is what a reference to a step reads.
func (s *step) value(h *history) any {
	output := func(c *call) any {
		r := h.responseOf(c)
		if r == nil || !r.Body.Success {
			return nil
		}
		return tree(r.Body.Payload)
	}
	switch {
	case !s.group:
		return output(s.calls[0])
	case s.race:
		if winner := s.winner(h); winner != nil {
			return output(winner)
		}
		return nil
	}
	collected := map[string]any{}
	for i, c := range s.calls {
		if value := output(c); value != nil {
			collected[s.childKey(i)] = value
		}
	}
	if len(collected) == 0 {
		return nil
	}
	return collected
}

func tree(data []byte) (value any) {
	_ = json.Unmarshal(data, &value) // what cannot be read is nothing
	return value
}

// checkArguments: a call has the arguments that follow from the stored responses.
func (w *world) checkArguments(t *turn, h *history, c *call, k *called) {
	if c.from == nil || k.response != nil && k.response.code() == string(events.CodeUnknownTool) {
		return
	}
	got := argumentsOf(k.call)["from"]
	if want := c.from.value(h); !reflect.DeepEqual(got, want) {
		w.violatef("%s#%s: called with %v, and step %s has %v", t.id.Turn, c.id, got, c.from.id, want)
	}
}

// argumentsOf are the arguments that a tool_call has.
func argumentsOf(r *idempotency.Record) map[string]any {
	var e struct {
		Data struct {
			Payload struct {
				Args map[string]any `json:"tool_args"`
			} `json:"payload"`
		} `json:"data"`
	}
	_ = json.Unmarshal(r.Data, &e) // what cannot be read has none
	return e.Data.Payload.Args
}

// countProgram adds up how programs went.
func (w *world) countProgram(t *turn, h *history, to map[string]int) {
	if h.program == nil {
		return
	}
	to["begun"]++
	to["taken over"] += len(h.takeovers)
	for _, p := range h.parks {
		to[p.Meta.Outcome]++
	}
	for _, s := range t.program.steps {
		if s.winner(h) != nil {
			to["races won"]++
		}
	}
	runs := map[string]int{}
	for _, e := range w.ledger {
		if e.turn == t.id.Turn && t.had(e.token) {
			runs[e.call]++
		}
	}
	for _, c := range t.calls {
		k := h.calls[c.id]
		if k == nil || k.call == nil {
			continue
		}
		to["calls"]++
		if runs[c.id] > 1 {
			to["entered again"]++
		}
		if c.nested != nil {
			to["nested"]++
		}
		if k.response != nil {
			to["calls that are "+k.response.code()]++
		}
	}
}
