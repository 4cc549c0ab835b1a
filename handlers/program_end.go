package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// How a program ends: outcome makes a result of what its calls have stored, endProgram stores it as the response of the turn.
// Before any response of a turn whose tool is a program, closeSteps ends the steps that have none.

// endProgram ends a turn whose program has an outcome, or was stopped and has none.
func (h *Handlers) endProgram(t *turn, d idempotency.Decision, out engine.Outcome, stopped error) inbound.Disposition {
	var coded *events.Error
	switch {
	case stopped == nil:
		return h.endWithOutcome(t, d.Hold, out)
	case errors.Is(stopped, ErrDraining):
		return inbound.NakAfter(0)
	case errors.As(stopped, &coded):
		h.logThrottled(t.m, slog.LevelWarn, "the program ends; its response has the reason", "", t.Attrs("code", coded.Code)...)
		if coded.Code == events.CodeCancelled || coded.Code == events.CodeStateCorrupt {
			return h.endWithCode(t, d, coded.Code)
		}
		t.unreported = true
		return h.endWithOutcome(t, d.Hold, engine.Failure(t.Binding.Tool, coded))
	}
	h.logThrottled(t.m, slog.LevelWarn, "the program was stopped; its message will be redelivered", "", t.Attrs("why", events.LogText(stopped))...)
	return inbound.Left()
}

// outcome returns the result of a program that is over. Stopped is why it has none: it continues elsewhere, or cannot be read.
func (p *programRun) outcome(err error) (out engine.Outcome, stopped error) {
	var refused *flow.Refused
	var coded *events.Error
	switch {
	case errors.As(err, &refused): // of a planner, or nested: any other program is refused before the claim of its turn
		p.own.ended = &programEnd{status: flow.StatusInvalid, refusal: refusalOf(err)}
		p.summary = planner.RefusedSummary(refused)
		p.fallback = p.summary
		p.h.warnRefused(p.own, refused)
		return p.refusedOutcome(refused, err), nil
	case p.runner == nil && errors.As(err, &coded) && coded.Code != events.CodeCancelled && coded.Code != events.CodeStateCorrupt:
		p.own.ended = &programEnd{status: flow.StatusFailed, refusal: refusalOf(err)}
		out = engine.Failure(p.own.Binding.Tool, coded)
		payload := notRun(p.own, out.Code)
		payload["message"] = out.Content
		if p.own.ended.refusal == "" {
			payload["status"] = string(flow.StatusFailed)
		}
		out.Payload = events.JSONOf(payload)
		return out, nil
	case p.runner == nil:
		return out, err
	case err == nil:
		return p.result(p.runner.Result("", "")), nil
	case errors.As(err, &coded) && coded.Code != events.CodeStateCorrupt:
		if coded.Code == events.CodeTimeout {
			p.h.logThrottled(p.turn.m, slog.LevelWarn, "a program took longer than it may; its response has the calls that have ended", "",
				p.own.Attrs("calls", len(p.runner.Program.Calls()), "ended", len(p.runner.Ends), "stopped", len(p.stoppedTools))...)
		}
		return p.result(p.runner.Result(string(coded.Code), p.endedText(coded))), nil
	}
	return out, err
}

// result is the outcome of a program that has ended.
func (p *programRun) result(e flow.Ended) engine.Outcome {
	of := p.runner.Program
	if of.Answer == nil && len(of.Steps) > 0 {
		p.summary, p.fallback = p.summaryOf(e)
	}
	out := engine.Outcome{ToolName: p.own.Binding.Tool, Attempts: 1, Entered: true, Duration: of.Duration(e), Status: events.StatusOK, Success: true}
	status := of.Status(e)
	p.own.ended = &programEnd{status: status}
	out.Payload = p.payload(e)
	switch halt := of.Next(e.State).Halt; {
	case of.Answer != nil && e.Code == "":
		out.Content = events.Clip(*of.Answer)
	case status == flow.StatusSuccess, status == flow.StatusPartial:
		out.Success = status == flow.StatusSuccess
		out.Content = fmt.Sprintf("The program has ended: %s.", counted(of.Count(e)))
	case e.Code != "":
		out.Status, out.Success, out.Code, out.Content = events.StatusError, false, events.Code(e.Code), events.Clip(e.Message)
	default:
		out.Status, out.Success, out.Code = events.StatusError, false, events.CodeToolError
		if code := events.Code(e.State[halt.ID].Code); code != "" {
			out.Code = code
		}
		out.Content = events.Clip(fmt.Sprintf("Call %s of tool %s failed, and the program halted: %s", halt.ID, halt.Tool, e.Outcomes[halt.ID].Message))
	}
	out.Message = out.Content
	return out
}

// payload is the payload of a program that has ended.
func (p *programRun) payload(e flow.Ended) json.RawMessage {
	of := p.runner.Program
	if of.Kind == flow.KindPlan {
		return events.JSONOf(of.PlanResult(e))
	}
	return events.JSONOf(of.OrchestrationResult(e, p.execID))
}

// closeRaces ends calls that an earlier owner of the turn has called, and that this owner has not entered again because another call of
// their race has succeeded. If the earlier owner has stored a response of such a call meanwhile, that response counts, so that the result
// of the program agrees with its records.
func (p *programRun) closeRaces() error {
	if p.d.Turn == nil {
		return nil
	}
	var open []*flow.Call
	for _, call := range p.runner.Program.Calls() {
		if _, ended := p.runner.Ends[call.ID]; !ended && p.raceWon(call) {
			open = append(open, call)
		}
	}
	if len(open) == 0 {
		return nil
	}
	calls, err := p.read(open, max(p.turn.program.newest.Load(), p.d.Turn.Newest()))
	if err != nil {
		return err
	}
	for i, call := range calls {
		if call == nil || call.Called == nil {
			continue
		}
		if call.Response == nil {
			if call.Response, err = p.closeLoser(call); err != nil {
				return err
			}
		}
		if p.runner.Ends[open[i].ID], err = p.endBefore(open[i], call); err != nil {
			return err
		}
	}
	return nil
}

// raceWon reports whether a call belongs to a race in which a call has succeeded.
func (p *programRun) raceWon(call *flow.Call) bool {
	return slices.ContainsFunc(p.runner.Program.RaceOf(call.ID), func(c *flow.Call) bool { return p.runner.Ends[c.ID].Success })
}

// closeLoser stores the response of a call that has lost its race, and returns the one that counts.
func (p *programRun) closeLoser(open *idempotency.Call) (*idempotency.Record, error) {
	event, called, err := p.h.closing(p.turn, open, events.CodeCancelled)
	if err != nil {
		return nil, err
	}
	hold := p.run.Hold()
	hold = hold.ForStep(open.Key.Call, "")
	response, err := p.h.Journal.EndStep(p.lease(), hold, event)
	if err != nil {
		return nil, err
	}
	p.turn.program.newest.note(response.Seq)
	if response.Meta.Nonce == hold.Nonce {
		p.h.countClosed(called, events.CodeCancelled)
	}
	return &response, nil
}

// closeSteps ends the steps of a turn that were called and have no response, before the turn gets its own: as cancelled if that is
// how the turn ends or a race was over, else as interrupted.
// It returns the turn as it is then, nil if it has no steps.
func (h *Handlers) closeSteps(ctx context.Context, t *turn, hold idempotency.Hold, code events.Code) (*idempotency.Turn, error) {
	if !t.closes {
		return nil, nil //nolint:nilnil // nothing was called
	}
	ends := events.CodeInterrupted
	if code == events.CodeCancelled || code == "" {
		ends = events.CodeCancelled
	}
	open := map[subjects.Key]*events.ToolCall{}
	held, err := h.Journal.CloseSteps(ctx, hold, t.programState().newest.Load(), func(step *idempotency.Call) ([]byte, error) {
		event, called, err := h.closing(t, step, ends)
		open[step.Key] = called
		return event, err
	})
	for key, called := range open {
		if r := held.CallOf(key).Response; r != nil && r.Meta.Nonce == hold.Nonce { // else another worker has stored it, and counts it
			h.countClosed(called, ends)
		}
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

// closing returns the response of a step that was called and that ends as cancelled or interrupted because its turn continues or ends
// without it, and the call, nil if it cannot be read.
func (h *Handlers) closing(t *turn, open *idempotency.Call, ends events.Code) (event []byte, called *events.ToolCall, err error) {
	text := "The turn has ended while tool %s ran: its effect may or may not have happened, and it is not run again."
	if ends == events.CodeCancelled {
		text = "Tool %s was stopped: its effect may or may not have happened."
	}
	s := &turn{m: t.m, Turn: run.Turn{StructuredOutputReady: t.StructuredOutputReady, Key: open.Key, Name: open.Key.String()}}
	tool := ""
	if call, err := events.ReadCall(open.Called.Data); err == nil {
		s.CallID, s.Program, s.Step, s.Depth, tool, called = call.ToolCallID, call.Program, call.Step, call.Depth, call.ToolName, call
	}
	event, err = h.endedStep(s, ends, fmt.Sprintf(text, tool), tool)
	return event, called, err
}

// ofProgram reports whether the tool of a turn is a program: by its claim, or by its steps if that cannot be read. T is nil for a turn
// that was not claimed before.
func ofProgram(t *idempotency.Turn) bool {
	return t != nil && (t.Claim != nil && t.Claim.Meta.Effect == string(events.EffectProgram) || len(t.Steps()) > 0)
}

// endedStep returns the response of a step of a tool that ends with a code and without it: its effect is not known.
func (h *Handlers) endedStep(t *turn, code events.Code, content, tool string) ([]byte, error) {
	r := t.response()
	r.ToolName = tool
	fail(&r, code, content)
	r.EffectState = events.EffectInDoubt
	return events.AppendToolResponse(nil, &r, h.Now())
}

// warnUnclosed logs that steps could not be ended.
func (h *Handlers) warnUnclosed(t *turn, err error) {
	h.logThrottled(t.m, slog.LevelWarn, "steps of a turn that ends could not be ended", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", events.LogText(err))
}
