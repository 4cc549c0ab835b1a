package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The tools of the steps of programs. Like other tools they take a few steps, ask what the script of their call has, and return, fail,
// or stop.

// invokeStep is a run of the tool of a step.
func (l tool) invokeStep(ctx context.Context, call *tools.Call, t *turn) (tools.Result, error) {
	w, x := l.w, l.w.active
	_, id, _ := strings.Cut(call.CallID, "#")
	c := t.callNamed(id)
	if c == nil {
		w.violatef("%s: a tool is entered for %s, and its program has no such call", t.id.Turn, call.CallID)
		return tools.Result{}, errNo
	}
	e := l.enter(call)
	e.call, e.here = id, ""
	if b := x.t.p.manifest.step(t, call.Name); b != nil && len(x.t.p.had) == x.t.manifests {
		e.here = b.Effect
	}
	run := len(w.ledger)
	w.ledger = append(w.ledger, e)
	x.t.steps = append(x.t.steps, e)
	w.tracef("  %s: tool of %s#%s entered (%s), epoch %d, run %d", x.p.name, e.turn, id, e.tool, e.epoch, run)
	w.checkStepEntry(t, c, e)
	err := l.work(ctx, &asking{fiber: x, t: t, e: e, number: run, host: call.Host, script: c.script})
	if err == nil {
		return l.stepResult(e, run), nil
	}
	e.result = "stopped"
	var coded *events.Error
	if errors.As(err, &coded) && coded.Code == events.CodeUserError {
		e.result = string(coded.Code)
	}
	w.tracef("  %s: run %d ends: %v", x.p.name, run, err)
	return tools.Result{}, err
}

// work is what the tool of a step does.
func (l tool) work(ctx context.Context, a *asking) error {
	w := l.w
	if a.script != nil {
		w.checkEntry(a.t, a.e)
		return a.all(ctx)
	}
	obeys := w.chance(3, 4)
	for range w.rng.IntN(4) {
		a.yield("in the tool")
		if ctx.Err() != nil && obeys {
			return context.Cause(ctx)
		}
	}
	if w.chance(1, 6) {
		return errNo
	}
	return nil
}

func (l tool) stepResult(e *entry, run int) tools.Result {
	e.result = events.StatusOK
	return tools.Result{Value: json.RawMessage(fmt.Sprintf(`{"run":%d}`, run))}
}

// step returns what the manifest binds to the tool of a step of a turn's program, nil if it does not know it.
func (m manifest) step(t *turn, name string) *bindings.Binding {
	for _, b := range m.set.Bindings() {
		if b.Workflow != workflow || b.Program == nil || b.Agent != t.agent {
			continue
		}
		for _, s := range m.set.StepTools(b, t.agent) {
			if s.Tool == name {
				return s
			}
		}
	}
	return nil
}
