package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/run"
)

// The agents around a program: the planner writes the program for a prompt, the responder writes the answer from its result. Each is
// asked in a separate step with records, so that what it has replied is used and not asked for again. Asking an agent has no effect,
// so a step whose worker died is entered again.

// plannerError ends a program that has no plan, because its planner has failed.
type plannerError struct {
	kind flow.Kind
	err  *events.Error
}

func (f *plannerError) Error() string { return f.err.Error() }

func (f *plannerError) Unwrap() error { return f.err }

// plan has the planner write the program for a prompt. The error is a [*flow.Refused] for a reply that is not a valid program, and a
// [*plannerError] if the planner has failed.
func (p *programRun) plan(ctx context.Context, ask *flow.Request) (*flow.Program, error) {
	writes := p.compiler.Planner(ask)
	if p.inPlanned {
		return nil, planner.Recursion(writes.Kind)
	}
	bound := p.h.Bindings().Planner(p.own.Binding, p.turn.Agent)
	reply, err := p.askAgent(ctx, events.StepPlan, bound, map[string]any{"prompt": ask.Prompt}, func(ctx context.Context, s *step) (json.RawMessage, error) {
		planned, err := writes.Plan(ctx, func(ctx context.Context, r planner.Request) (json.RawMessage, error) { return p.request(ctx, s, &r) })
		if planned.Reply != nil {
			return planned.Reply, nil // also one that is refused: compiling it again refuses it again
		}
		return nil, err
	})
	var failed *events.Error
	switch {
	case errors.As(err, &failed) && !stopsProgram(failed.Code):
		return nil, &plannerError{writes.Kind, failed}
	case err != nil:
		return nil, err
	}
	return writes.Compile(reply)
}

// stopsProgram reports whether a code ends the turn as a whole.
func stopsProgram(code events.Code) bool {
	return code == events.CodeCancelled || code == events.CodeStateCorrupt
}

// isPrompt reports whether a planner has written, or will write, the program of a call with these arguments.
func isPrompt(args map[string]any) bool {
	prompt, _ := args["prompt"].(string)
	return strings.TrimSpace(prompt) != ""
}

// respond has the responder write the content of the response of the turn, if the manifest names one and the program has ended by
// itself. Ended is the error with which it has ended: that it was refused, or nil.
func (p *programRun) respond(ctx context.Context, out *engine.Outcome, ended error) error {
	refused, isRefused := errors.AsType[*flow.Refused](ended)
	if p.own.Binding.Program.Respond == "" || ended != nil && !isRefused {
		return nil
	}
	summary, fallback, ok := p.summary(refused)
	if !ok {
		return nil
	}
	if refused == nil {
		if err := p.storeResult(ctx, out); err != nil {
			return err
		}
	}
	prompt, _ := p.own.args["prompt"].(string)
	asks := planner.Responder{Prompt: prompt, Plan: p.written(), Summary: summary}
	bound := p.h.Bindings().Responder(p.own.Binding, p.turn.Agent)
	reply, err := p.askAgent(ctx, events.StepRespond, bound, map[string]any{"summary": summary}, func(ctx context.Context, s *step) (json.RawMessage, error) {
		r := asks.Request()
		return p.request(ctx, s, &r)
	})
	var content string
	if err == nil {
		content, err = planner.Content(reply)
	}
	var failed *events.Error
	switch {
	case err == nil:
		out.Content = content
	case !errors.As(err, &failed) || stopsProgram(failed.Code):
		return err
	case fallback != "":
		out.Content = fallback
	default: // the program has no failure that the content could name
		out.Status, out.Success, out.Code = events.StatusError, false, failed.Code
		out.Content = events.Clip("The program has ended, but its answer could not be written: " + failed.Msg)
	}
	out.Message = out.Content
	return nil
}

// summary returns what the responder is asked about, and the content if it fails. False: no responder is asked.
func (p *programRun) summary(refused *flow.Refused) (summary, fallback string, ok bool) {
	if refused != nil {
		summary = planner.RefusedSummary(refused)
		return summary, summary, true
	}
	if p.runner == nil || len(p.runner.Program.Steps) == 0 {
		return "", "", false
	}
	e := p.runner.Result("", "")
	if p.runner.Program.Kind == flow.KindPlan {
		r := p.runner.Program.PlanResult(e)
		return planner.PlanSummary(r), planner.Fallback(r), true
	}
	r := p.runner.Program.OrchestrationResult(e, func(call string) string { return events.StepID(p.turn.CallID, p.prefix+call) })
	return planner.OrchestrationSummary(r), planner.OrchestrationFallback(r), true
}

// written is the program as far as a responder needs it: calls with their arguments as they were written.
func (p *programRun) written() any {
	if p.runner == nil {
		return nil
	}
	calls := []any{}
	for _, call := range p.runner.Program.Calls() {
		calls = append(calls, map[string]any{"call": call.ID, "tool_name": call.Tool, "arguments": call.Arguments})
	}
	plan := map[string]any{"calls": calls}
	if p.runner.Program.Reasoning != "" {
		plan["reasoning"] = p.runner.Program.Reasoning
	}
	return plan
}

// storeResult stores how the program has ended, before the responder is asked.
func (p *programRun) storeResult(ctx context.Context, out *engine.Outcome) error {
	t := p.own
	payload, err := p.h.shrink(p.lease(), ctx, t.Key, events.RecordResult, out.Payload, out.Payload)
	if err != nil {
		return fmt.Errorf("store the result of the program: %w", err)
	}
	event, err := events.Encode(events.KindPlanFinished, &events.PlanFinished{
		Kind: events.KindPlanFinished, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: t.Binding.Tool, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, WorkflowName: t.Workflow,
		Status: out.Status, Success: out.Success, Content: out.Content, Payload: payload, Code: out.Code, DurationMS: out.Duration.Milliseconds(),
	}, p.h.Now())
	if err != nil {
		return fmt.Errorf("encode the result of the program: %w", err)
	}
	_, err = p.h.Journal.StoreResult(p.lease(), p.run.Hold(), event)
	return err
}

// askAgent returns the reply of an agent, as it is stored: by an earlier owner of the turn, else by this one, with ask.
func (p *programRun) askAgent(
	ctx context.Context, id string, bound *bindings.Binding, args map[string]any, ask func(context.Context, *step) (json.RawMessage, error),
) (json.RawMessage, error) {
	if bound == nil {
		return nil, &events.Error{Code: events.CodeUnknownTool, Op: "program", Msg: fmt.Sprintf("the agent of step %s is not in the workflow (any more)", id)}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := p.newStep(&flow.Call{ID: id, Tool: bound.Tool})
	b := *bound
	if b.Timeout <= 0 {
		b.Timeout = p.own.Binding.Program.Limits.StepTimeout
	}
	s.Binding, s.args = &b, args
	if err := p.h.findTool(s.turn); err != nil {
		return nil, err
	}
	s.Effect = bindings.EffectNone
	s.run = p.run.Step(ctx, stop, &s.Turn, string(s.Effect), func() {})
	defer p.run.EndStep(s.run)
	end, err := p.enterAgent(ctx, s, ask)
	if _, over := s.run.Close(); over != nil && err == nil && !errors.Is(over, errCancelled) {
		err = over
	}
	switch {
	case err != nil:
		return nil, err
	case !end.Success:
		return nil, &events.Error{Code: events.Code(end.Code), Op: "program", Msg: end.Message}
	}
	return events.JSONOf(end.Output), nil
}

// enterAgent stores the tool_call of the step, asks the agent and stores its reply.
func (p *programRun) enterAgent(ctx context.Context, s *step, ask func(context.Context, *step) (json.RawMessage, error)) (program.End, error) {
	entry, err := p.storeCall(ctx, s)
	switch {
	case err != nil:
		return program.End{}, err
	case entry.Response != nil:
		return p.endOf(ctx, nil, entry.Response, s.args)
	}
	begun := time.Now()
	reply, err := ask(ctx, s)
	s.attempts, s.ran = 1, time.Since(begun)
	out := engine.Outcome{Payload: reply, Status: events.StatusOK, Success: true, Content: "The agent has replied."}
	var failed *events.Error
	switch {
	case err == nil:
	case errors.As(err, &failed):
		out = engine.Failure(s.Binding.Tool, failed)
	default:
		return program.End{}, err
	}
	out.ToolName, out.Attempts, out.Duration, out.Entered = s.Binding.Tool, 1, s.ran, true
	return p.end(ctx, s, out)
}

// request asks the agent of a step once. Its errors are an [events.Error] for an agent that fails, else why the turn is left.
func (p *programRun) request(ctx context.Context, s *step, r *planner.Request) (json.RawMessage, error) {
	call, err := p.h.toolCall(ctx, s.turn, s.run)
	if err != nil {
		return nil, err
	}
	r.Put(call)
	out := p.h.Engine.Do(ctx, engine.Invocation{Call: call, Tool: run.PromptTool(s.Binding, s.Tool), Hosts: s.run})
	run.Scrub(call.Secrets, &out)
	p.h.Metrics.Tool(s.Binding, &out)
	switch {
	case out.Stopped != nil:
		return nil, out.Stopped
	case out.Status != events.StatusOK:
		if out.Err != nil {
			p.h.logFailure(s.turn, out)
		}
		return nil, &events.Error{Code: out.Code, Op: "program", Msg: out.Content}
	}
	return out.Payload, nil
}
