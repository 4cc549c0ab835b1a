package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/throttle"
)

// Programs that are not run: invalid ones, ones that are nested too deep, and ones whose tool is disabled.

// prepareProgram compiles the program of a turn before it is claimed, and rejects it if it is not valid: steps 4 and 5 of a turn.
func (h *Handlers) prepareProgram(t *turn) {
	t.args, _ = t.Data.(map[string]any)
	t.argsJSON = t.data
	c := h.compiler(t)
	compiled, ask, err := c.Compile(t.Data)
	if err != nil {
		t.reject = h.rejectUnrun(t, err)
	} else {
		t.programState().compiled = &compiledProgram{compiler: c, program: compiled, ask: ask}
	}
	t.closes = t.reject == nil // else no step is called
}

// rejectUnrun rejects a program that cannot run.
func (h *Handlers) rejectUnrun(t *turn, err error) *rejection {
	var r *rejection
	if refused, ok := errors.AsType[*flow.Refused](err); ok {
		r = rejectProgram(t, refused, err)
		h.warnRefused(t, refused)
	} else {
		r = reject(cmp.Or(events.CodeOf(err), events.CodeToolError), err)
		payload := notRun(t, r.code)
		payload["message"], r.payload = r.content, payload
	}
	r.refusal = refusalOf(err)
	return r
}

// notRun is the payload of a program that is not run: the one of a program that has ended, without steps.
func notRun(t *turn, code events.Code) map[string]any {
	payload := map[string]any{"status": string(flow.StatusInvalid), "code": string(code)}
	if t.Binding.Program.Kind == bindings.KindPlan {
		payload["results"], payload["skipped"], payload["halted"] = []any{}, []any{}, false
	} else {
		payload["steps"], payload["success"] = []any{}, false
	}
	return payload
}

// rejectProgram rejects an invalid program, with what is wrong with it and feedback for the model.
func rejectProgram(t *turn, refused *flow.Refused, err error) *rejection {
	code := events.CodeValidationFailed
	if events.CodeOf(err) == events.CodeGuardrail { // the program itself is valid: it is too deep where it was called from
		code = events.CodeGuardrail
	}
	payload := notRun(t, code)
	payload["errors"], payload["feedback"] = events.JSONOf(refused.Problems), refused.Feedback()
	if refused.Reason != "" {
		payload["reason"] = refused.Reason
	}
	owner := "agent " + t.Agent
	if t.Agent == "" { // of a plan_ready
		owner = "workflow " + t.Workflow
	}
	whose := "The program of " + owner
	if refused.Reason == flow.ReasonPlannerInvalid || refused.Reason == flow.ReasonPlannerRecursion {
		whose = fmt.Sprintf("The program that planner %s wrote for %s", t.Binding.Program.Planner, owner)
	}
	return &rejection{code: code, payload: payload, content: events.Clip(asSentence(whose + " is not run: " + refused.Error()))}
}

// refusedOutcome is the outcome of a program that is not valid.
func (p *programRun) refusedOutcome(refused *flow.Refused, err error) engine.Outcome {
	r := rejectProgram(p.own, refused, err)
	return engine.Outcome{
		ToolName: p.own.Binding.Tool, Status: events.StatusError, Code: r.code, Content: r.content, Message: r.content, Payload: events.JSONOf(r.payload),
	}
}

// warnRefused logs that a program is not run. What is wrong with it is in the response only: it may quote the program.
func (h *Handlers) warnRefused(t *turn, refused *flow.Refused) {
	args := t.Attrs("agent", throttle.Cut(t.Agent), "bytes", len(t.argsJSON), "problems", len(refused.Problems), "rule", refused.Problems[0].Rule)
	if refused.Reason != "" {
		args = append(args, "reason", refused.Reason)
	}
	h.logThrottled(t.m, slog.LevelWarn, "a program is not run; its response has the reasons", "", args...)
}
