package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Calls of a program that are not in it: the agent that writes it from a prompt (plan), the person who approves it before its first
// step (approve), and the agent that answers the user after it (respond). Each has records like a step, so that a worker that
// continues the turn finds what was replied.

// newInternalCall returns a call that oneturn makes for a program, with the tool of a binding.
func (p *programRun) newInternalCall(id string, b *bindings.Binding) *step {
	s := p.newStep(&flow.Call{ID: id, Tool: b.Tool})
	s.Key = p.turn.Key.WithCall(subjects.CallOf(p.prefix + id))
	s.Name, s.Effect, s.unusable, s.internal = s.Key.String(), bindings.EffectNone, nil, true
	bound := *b
	s.Binding = &bound
	return s
}

// attended runs f for an internal call and rests meanwhile, so that the turn can be parked while the call waits for people.
func (p *programRun) attended(ctx context.Context, s *step, f func(ctx context.Context) (program.End, error)) (end program.End, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.run = p.run.Step(ctx, stop, &s.Turn, string(s.Effect), p.changed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		end, err = f(ctx)
		if _, over := s.run.Close(); over != nil && err == nil {
			err = over
		}
		if err == nil && end.Seq > 0 { // it has a response
			err = p.closeQuestions(s.Key, s.Asked, end.Seq)
		}
	}()
	for {
		var waiting []*run.Run
		if s.run.Waits() {
			waiting = []*run.Run{s.run}
		}
		p.run.Rest(waiting, nil)
		over := false
		select {
		case <-done:
			over = true
		case <-p.changes:
		}
		p.run.Work()
		if over {
			p.run.EndStep(s.run)
			return end, err
		}
	}
}

// planned returns the program that the planner has written for a prompt. Its reply is stored before it is used.
func (p *programRun) planned(ctx context.Context, ask *flow.Request) (*flow.Program, error) {
	b := p.compiler.PlannerBinding()
	if b == nil {
		return nil, &events.Error{Code: events.CodeUnknownTool, Op: "plan", Msg: "the planner of tool " + p.own.Binding.Tool + " is not in the workflow (any more)"}
	}
	plans := p.compiler.Planner(ask)
	p.enterState(ctx, statePlanning, "start_plan", "")
	s := p.newInternalCall(events.StepPlan, b)
	s.args = map[string]any{"prompt": ask.Prompt}
	if err := p.h.findTool(s.turn); err != nil {
		return nil, err
	}
	s.Effect = bindings.EffectNone
	end, err := p.attended(ctx, s, func(ctx context.Context) (program.End, error) {
		if end, ended, err := p.internalCall(s); ended || err != nil {
			return end, err
		}
		s.Hit(failpoint.BeforePlanner)
		result, err := plans.Plan(ctx, func(ctx context.Context, r planner.Request) (json.RawMessage, error) { return p.prompt(ctx, s, &r) })
		s.Hit(failpoint.AfterPlannerReply)
		if refused, ok := errors.AsType[*flow.Refused](err); err != nil && (!ok || result.Reply == nil) {
			if ok {
				return program.End{}, refused
			}
			return p.promptFailed(s, err)
		}
		return p.end(s, engine.Outcome{Status: events.StatusOK, Success: true, Content: "The planner has replied.", Payload: result.Reply, Attempts: result.Asked})
	})
	switch {
	case err != nil:
		return nil, err
	case !end.Success:
		return nil, &events.Error{Code: events.Code(end.Code), Op: "plan", Msg: fmt.Sprintf(
			"planner %q of tool %q (agent %q) has failed: %s", b.Tool, p.own.Binding.Tool, p.own.Agent, end.Message)}
	}
	p.own.Hit(failpoint.AfterPlanner)
	reply := events.JSONOf(end.Output)
	if plan, err := plans.Read(reply); err == nil {
		p.plan = plan
	}
	return plans.Compile(reply)
}

// internalCall stores the tool_call of an internal call. If an earlier owner has ended the call, it returns that end.
func (p *programRun) internalCall(s *step) (end program.End, ended bool, err error) {
	entry, err := p.storeCall(s)
	if err != nil || entry.Response == nil {
		return program.End{}, false, err
	}
	end, err = p.endWith(s.args, entry.Response)
	return end, true, err
}

// isPrompt reports whether the arguments of a program are a prompt for its planner, and not a plan with a key of that name.
func isPrompt(args map[string]any) bool {
	text, _ := args["prompt"].(string)
	return strings.TrimSpace(text) != "" && args["type"] == nil
}

// prompt asks an agent once.
func (p *programRun) prompt(ctx context.Context, s *step, r *planner.Request) (json.RawMessage, error) {
	call := run.Call(s.Binding, s.StructuredOutputReady, s.CallID)
	hold := s.run.Hold()
	call.FencingToken, call.Epoch, call.Effect, call.Depth, call.Secrets = hold.Token, hold.Epoch, hold.Effect, s.Depth, s.run.Secrets()
	call.Trace = s.traceparent()
	r.Put(call)
	out := p.h.Engine.Do(ctx, engine.Invocation{Call: call, Tool: run.PromptTool(s.Binding, s.Tool), Hosts: s.run})
	s.asked += out.Attempts
	run.Scrub(call.Secrets, &out)
	switch {
	case out.Stopped != nil:
		return nil, out.Stopped
	case out.Code != "":
		return nil, &events.Error{Code: out.Code, Op: "prompt", Msg: out.Content, Err: out.Err}
	}
	return out.Payload, nil
}

// promptFailed ends the call of an agent that has not replied, also because the time of the program is over, unless its turn ends or
// continues elsewhere.
func (p *programRun) promptFailed(s *step, err error) (program.End, error) {
	coded, ok := errors.AsType[*events.Error](err)
	if !ok || coded.Code == events.CodeCancelled || coded.Code == events.CodeStateCorrupt {
		return program.End{}, err
	}
	p.h.logThrottled(p.turn.m, slog.LevelWarn, "an agent of a program has not replied; the response has the reason", "",
		s.Attrs("call", s.Step, "agent", throttle.Cut(s.Agent), "code", coded.Code)...)
	out := engine.Failure(s.Binding.Tool, coded)
	out.Attempts = s.asked
	return p.end(s, out)
}

// respond has an agent answer the user after the program, and returns the outcome with its text.
func (p *programRun) respond(ctx context.Context, out engine.Outcome) (engine.Outcome, error) {
	b := p.compiler.ResponderBinding()
	stopped := ctx.Err() != nil || out.Code == events.CodeCancelled
	switch {
	case b == nil, p.summary == "":
		return out, nil
	case errors.Is(context.Cause(ctx), ErrDraining): // another worker has it answered
		return out, ErrDraining
	case out.Code == "" && events.CodeOf(context.Cause(ctx)) == events.CodeTimeout: // just after the calls
		return p.unanswered(out, events.CodeTimeout, reason(context.Cause(ctx))), nil
	case stopped:
		return out, nil
	}
	if p.runner != nil { // a program that was refused has no result
		if err := p.storeResult(&out); err != nil {
			return out, err
		}
	}
	s := p.newInternalCall(events.StepRespond, b)
	s.args = map[string]any{"summary": p.summary}
	if err := p.h.findTool(s.turn); err != nil {
		if code := events.CodeOf(err); code != "" {
			return p.unanswered(out, code, reason(err)), nil
		}
		return out, err
	}
	s.Effect = bindings.EffectNone
	prompt, _ := p.own.args["prompt"].(string)
	plan, err := p.written()
	if err != nil {
		return out, err
	}
	responder := &planner.Responder{Prompt: prompt, Plan: plan, Summary: p.summary}
	end, err := p.attended(ctx, s, func(ctx context.Context) (program.End, error) {
		if end, ended, err := p.internalCall(s); ended || err != nil {
			return end, err
		}
		s.Hit(failpoint.BeforeResponder)
		request := responder.Request()
		reply, err := p.prompt(ctx, s, &request)
		s.Hit(failpoint.AfterResponder)
		if err != nil {
			return p.promptFailed(s, err)
		}
		text, err := planner.Content(reply)
		if err != nil {
			return p.promptFailed(s, err)
		}
		return p.end(s, engine.Outcome{Status: events.StatusOK, Success: true, Content: events.Clip(text), Payload: events.JSONOf(map[string]string{"content": text}), Attempts: 1})
	})
	switch {
	case err != nil:
		return out, err
	case end.Success:
		out.Content = end.Message
		return out, nil
	}
	return p.unanswered(out, events.Code(end.Code), end.Message), nil
}

// unanswered is the outcome of a program whose answer could not be written because of why.
func (p *programRun) unanswered(out engine.Outcome, code events.Code, why string) engine.Outcome {
	if !out.Success {
		out.Content = events.Clip(p.fallback)
		return out
	}
	out.Status, out.Success, out.Code = events.StatusError, false, code
	out.Content = events.Clip(out.Content + " Do not repeat the calls: their results are in the payload, and only the answer could not be written: " + why)
	return out
}

// written returns the plan as it was written: by a planner, which may have replied to an earlier owner of the turn, else as the turn
// has it.
func (p *programRun) written() (any, error) {
	if p.plan != nil {
		return p.plan, nil
	}
	var reply any
	planned := p.d.Turn.CallOf(p.turn.Key.WithCall(subjects.CallOf(p.prefix + events.StepPlan)))
	switch {
	case p.copies != nil && p.copies.Planner != nil: // to the turn that this one retries
		reply = p.copies.Planner
	case isPrompt(p.own.args) && (planned == nil || planned.Response == nil): // the reply in this run could not be read
		return nil, nil //nolint:nilnil // there is no plan
	case planned == nil || planned.Response == nil:
		return flow.PlanOf(p.compiler.Kind(), p.own.args), nil
	default:
		end, err := p.endOf(planned.Called, planned.Response)
		if err != nil {
			return nil, err
		}
		reply = end.Output
	}
	plan, err := p.compiler.Planner(&flow.Request{}).Read(events.JSONOf(reply))
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a reply that cannot be read has no plan
	}
	return plan, nil
}

// storeResult stores the result of the program before an agent responds to it. The stored one counts.
func (p *programRun) storeResult(out *engine.Outcome) error {
	t := p.own
	payload, err := p.h.shrink(p.lease(), p.turn.m.tools, t.Key, events.RecordResult, out.Payload, out.Payload)
	if err != nil {
		return err
	}
	e := &events.PlanFinished{
		Kind: events.KindPlanFinished, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: t.Binding.Tool, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, WorkflowName: t.Workflow,
		Status: out.Status, Success: out.Success, Content: out.Content, Payload: payload, Code: out.Code, DurationMS: out.Duration.Milliseconds(),
	}
	event, err := events.Encode(events.KindPlanFinished, e, p.h.Now())
	if err != nil { // many results, each of which fits into an event
		if e.Payload, err = p.h.outside(p.lease(), p.turn.m.tools, t.Key, events.RecordResult, out.Payload); err != nil {
			return err
		}
		event, err = events.Encode(events.KindPlanFinished, e, p.h.Now())
	}
	if err != nil {
		return fmt.Errorf("encode the result of the program: %w", err)
	}
	_, err = p.h.Journal.StoreResult(p.lease(), p.run.Hold(), event)
	return err
}

// approveComponent displays the question whether a program may run.
const approveComponent = "PlanApproval"

// opApprove is the operation in the error of a program that was not approved.
const opApprove = "approve"

// approve asks a person whether the program may run, unless it was a part of a program that was approved. A program without calls does
// nothing that could be approved.
func (p *programRun) approve(ctx context.Context, stored *flow.Program) error {
	if !p.own.Binding.Program.Approve || p.shown || p.keepsAll(stored) {
		return nil
	}
	s := p.newInternalCall(events.StepApprove, p.own.Binding)
	s.Binding.Program, s.Binding.Timeout, s.Effect = nil, 0, bindings.EffectIdempotent
	var answer struct {
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	}
	asks := asker(func(ctx context.Context, host tools.Host) error {
		a, err := host.Ask(ctx, tools.Question{
			Component: approveComponent, Payload: events.JSONOf(program.Payload(stored)),
			Schema: json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}`),
		})
		if err != nil {
			return err
		}
		return json.Unmarshal(a.Value, &answer)
	})
	_, err := p.attended(ctx, s, func(ctx context.Context) (program.End, error) {
		out := p.h.Engine.Do(ctx, engine.Invocation{Call: run.Call(s.Binding, s.StructuredOutputReady, s.CallID), Tool: engine.Tool{Invoker: asks}, Hosts: s.run})
		switch {
		case out.Stopped != nil:
			return program.End{}, out.Stopped
		case out.Code != "":
			return program.End{}, &events.Error{Code: out.Code, Op: opApprove, Msg: out.Content, Err: out.Err}
		}
		return program.End{Success: true}, nil
	})
	switch {
	case err != nil:
		return err
	case answer.Approved != nil && *answer.Approved:
		return nil
	}
	text := "The program was not approved"
	if answer.Reason != "" {
		text += ": " + answer.Reason
	}
	return &events.Error{Code: events.CodeCancelled, Op: opApprove, Msg: events.Clip(text)}
}

// asker is a tool that only asks.
type asker func(ctx context.Context, host tools.Host) error

// Invoke implements [tools.Invoker].
func (f asker) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	return tools.Result{}, f(ctx, call.Host)
}

// summaryOf returns what a responder gets of an ended program, and the text if it fails.
func (p *programRun) summaryOf(e flow.Ended) (summary, fallback string) {
	of := p.runner.Program
	if of.Kind == flow.KindPlan {
		r := of.PlanResult(e)
		return planner.PlanSummary(r), planner.Fallback(r)
	}
	r := of.OrchestrationResult(e, func(call string) string { return call })
	return planner.OrchestrationSummary(of, r), planner.OrchestrationFallback(of, r)
}
