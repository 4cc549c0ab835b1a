package retry_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/retry"
)

// journal makes the records of a turn.
type journal struct {
	t       *testing.T
	records []retry.Record
	turn    string
}

func newJournal(t *testing.T, turn string) *journal {
	t.Helper()
	return &journal{t: t, turn: turn}
}

func (j *journal) add(kind string, event any) *journal {
	j.t.Helper()
	body, err := events.Encode(kind, event, time.Unix(0, 0))
	require.NoError(j.t, err)
	j.records = append(j.records, retry.Record{Kind: kind, Seq: uint64(len(j.records) + 1), Event: body})
	return j
}

// claim adds the claim of a program; change may be nil.
func (j *journal) claim(change func(e *events.ToolCall)) *journal {
	j.t.Helper()
	e := j.called(change, "", "run_plan", events.EffectProgram)
	return j.add(events.KindToolCall, e)
}

func (j *journal) called(change func(e *events.ToolCall), step, tool string, effect events.Effect) *events.ToolCall {
	e := &events.ToolCall{
		AppID: "app", ChatID: "chat", Turn: j.turn, ToolName: tool, ToolCallID: j.turn, Step: step, Effect: effect, WorkflowName: "W",
		InteractionType: events.InteractionAutoTool, Payload: events.ToolCallPayload{ToolArgs: map[string]any{"of": step}},
	}
	if step != "" {
		e.ToolCallID = events.StepID(j.turn, step)
	}
	if change != nil {
		change(e)
	}
	return e
}

// program adds the program of the turn, or of a call.
func (j *journal) program(call string, p *flow.Program, copies *retry.Copies) *journal {
	j.t.Helper()
	e := &events.PlanStarted{ToolCallID: j.turn, ProgramData: events.JSONOf(p)}
	if call != "" {
		e.ToolCallID = events.StepID(j.turn, call)
	}
	if copies != nil {
		var err error
		e.CopiedData, err = copies.Encode()
		require.NoError(j.t, err)
	}
	return j.add(events.KindPlanStarted, e)
}

// call adds a call that was entered, and its end: "" is a success, "-" none.
func (j *journal) call(step string, effect events.Effect, code events.Code) *journal {
	j.t.Helper()
	j.add(events.KindToolCall, j.called(nil, step, "tool", effect))
	if code != "-" {
		j.ends(step, code)
	}
	return j
}

// ends adds a response: of the turn if step is "".
func (j *journal) ends(step string, code events.Code) *journal {
	j.t.Helper()
	r := &events.ToolResponse{Step: step, ToolCallID: j.turn, Status: events.StatusOK, Success: true, Payload: map[string]any{"from": step}, Attempts: 1}
	if step != "" {
		r.ToolCallID = events.StepID(j.turn, step)
	}
	if code != "" {
		r.Status, r.Success, r.Code, r.Content = events.StatusError, false, code, "why"
	}
	return j.add(events.KindToolResponse, r)
}

func (j *journal) read() *retry.Past {
	j.t.Helper()
	p, err := retry.Read(j.records, inline)
	require.NoError(j.t, err)
	return p
}

func inline(_, _ string, stored any) (any, error) { return stored, nil }

// plan is a program of calls, one after the other.
func plan(ids ...string) *flow.Program {
	p := &flow.Program{Kind: flow.KindPlan}
	for _, id := range ids {
		p.Steps = append(p.Steps, flow.Step{ID: id, Calls: []flow.Call{{ID: id, Tool: "tool", Arguments: map[string]any{}}}})
	}
	return p
}

func has(o *retry.Outline, copied bool) (ids []string) {
	for _, c := range o.Calls {
		if c.Copied == copied {
			ids = append(ids, c.Call)
		}
	}
	return ids
}

func number(n string) json.Number { return json.Number(n) }
