package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Programs, planners and tools that try to break a turn, or to get more than its limits allow.

// gives is a tool with one result.
func gives(result string) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(result)}, nil
	}
}

// calls is a plan of calls, each the name of a tool and its arguments.
func calls(list ...string) string {
	for i, call := range list {
		name, arguments, _ := strings.Cut(call, " ")
		list[i] = `{"tool_name": "` + name + `", "arguments": ` + arguments + `}`
	}
	return `{"type": "tool_calls", "calls": [` + strings.Join(list, ",") + `]}`
}

// repeated returns n times the same text.
func repeated(n int, text string) (list []string) {
	for range n {
		list = append(list, text)
	}
	return list
}

// numbers is a JSON object with n values.
func numbers(n int) string { return `{"l": [` + strings.Join(repeated(n, "1"), ",") + `]}` }

// TestResultThatCannotBeReadFailsItsStepOnly has results that are stored as blobs, which are not decoded when they are stored.
func TestResultThatCannotBeReadFailsItsStepOnly(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 300<<10)
	for name, c := range map[string]struct{ result, plan, reason string }{
		"too many values":  {numbers(200_000), calls(`free {}`, `two {}`), "more than 100000 values"},
		"nested too deep":  {strings.Repeat(`{"k":`, 100) + `"` + large + `"` + strings.Repeat("}", 100), calls(`free {}`), "nested more than 64 deep"},
		"a key twice":      {`{"v": 1, "v": "` + large + `"}`, calls(`free {}`), "duplicate key"},
		"no JSON":          {`{"v": "` + large, calls(`free {}`), "the document ends inside a string"},
		"no UTF-8":         {"{\"v\": \"\xff" + large + `"}`, calls(`free {}`), "invalid UTF-8"},
		"a number":         {`{"v": 1e999999, "w": "` + large + `"}`, calls(`free {}`), "exponent over 308"},
		"a nested program": {numbers(60_000), calls(`run_plan {"plan": `+calls(`free {}`, `free {}`, `free {}`)+`}`, `two {}`), "more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"free": gives(c.result), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", c.plan, 1)).Do)
			r := k.response()
			require.Equal(t, events.CodeToolError, r.Code, r.Content)
			require.Contains(t, r.Content, "has run, but no event can hold its result")
			require.Contains(t, r.Content, c.reason)
			require.NotContains(t, k.enteredCalls(), "#1", "the plan has halted")
			require.Contains(t, k.names(), "e s_0.tool_response")
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, "failed", payload["status"])
		})
	}
}

const hostileWorkflow = `
agents: {A: , B: , P: }
tools:
- {name: run_plan, kind: plan, agent: A, uses: [run_plan, make, two, guarded, ask]}
- {name: approved, kind: plan, agent: B, approve: true, uses: [make, two, guarded]}
- {name: guarded, kind: plan, auto: false, approve: true, uses: [two]}
- {name: planned, kind: plan, agent: P, planner: planner, respond: writer, uses: [run_plan, planned, two]}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
- {name: writer, kind: agent, auto: false, nats: {subject: agents.writer}}
- {name: make, kind: go, auto: false, effect: idempotent, output: {type: object, additionalProperties: true}}
- {name: two, kind: go, auto: false, effect: idempotent, output: {type: object, additionalProperties: true}}
- {name: ask, kind: go, auto: false, effect: replay}
`

// TestProgramsMadeAtRunTimeCountAgainstTheLimitOfCalls has plans that no compiler has seen as a part of the turn's program.
func TestProgramsMadeAtRunTimeCountAgainstTheLimitOfCalls(t *testing.T) {
	t.Parallel()
	inner := calls(repeated(45, `two {}`)...)
	for name, c := range map[string]struct{ agent, plan string }{
		"a value":  {"A", calls(append([]string{`make {}`}, repeated(20, `run_plan {"plan": "$0.output.plan"}`)...)...)},
		"a prompt": {"P", calls(repeated(20, `planned {"prompt": "do it"}`)...)},
		"within":   {"A", calls(`make {}`, `run_plan {"plan": `+calls(`two {}`)+`}`, `run_plan {"plan": "$0.output.plan"}`, `run_plan {"plan": "$0.output.plan"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"make": gives(`{"plan": ` + inner + `}`), "planner": gives(inner), "writer": gives(`"no"`), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.plan, 1)).Do)
			r := k.response()
			require.False(t, r.Success)
			require.Contains(t, []events.Code{events.CodeGuardrail, events.CodeValidationFailed}, r.Code)
			require.LessOrEqual(t, len(k.enteredCalls()), 50)
			require.GreaterOrEqual(t, len(k.enteredCalls()), 45, "what fits runs")
		})
	}
}

// TestArgumentsThatMultiplyAnOutputEndTheProgram passes on an output again and again.
func TestArgumentsThatMultiplyAnOutputEndTheProgram(t *testing.T) {
	t.Parallel()
	again := `two {"l": [` + strings.Join(repeated(30, `"$0.output.v"`), ",") + `]}`
	k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"make": gives(`{"v": "` + strings.Repeat("x", 1<<20) + `"}`), "two": gives(`{}`)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(append([]string{`make {}`}, repeated(40, again)...)...), 1)).Do)
	r := k.response()
	require.Equal(t, events.CodeTooLarge, r.Code)
	require.Contains(t, r.Content, "the arguments and results of all steps of a turn may have 64 MiB")
	require.Equal(t, []string{"#0", "#1", "#2"}, k.enteredCalls())
	blob, ok := events.BlobOf(r.Payload)
	require.True(t, ok)
	require.Less(t, blob.Size, 64<<20)
}

func TestResultsThatAreTooLargeTogetherAreNotStored(t *testing.T) {
	t.Parallel()
	k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"two": gives(`{"v": "` + strings.Repeat("x", 15<<20) + `"}`)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(repeated(8, `two {}`)...), 1)).Do)
	r := k.response()
	require.Equal(t, events.CodeTooLarge, r.Code)
	require.Contains(t, r.Content, "its effect has happened, but its result of 15728649 bytes is not stored")
	require.Len(t, k.enteredCalls(), 5)
}

// TestArgumentsThatNoRecordCanHoldEndTheirStepOnly nests an output until no event holds it.
func TestArgumentsThatNoRecordCanHoldEndTheirStepOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, reason string }{
		"too deep":        {strings.Repeat(`{"k":`, 56) + "1" + strings.Repeat("}", 56), "nested more than 56 deep"},
		"too many values": {numbers(60_000), "99000 values in all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"make": gives(c.output), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(`make {}`, `two {"a": "$0.output", "b": "$0.output"}`), 1)).Do)
			r := k.response()
			require.Equal(t, events.CodeTooLarge, r.Code)
			require.Contains(t, r.Content, c.reason)
			require.Contains(t, k.names(), "e s_1.tool_response")
			require.Equal(t, []string{"#0"}, k.enteredCalls())
		})
	}
}

// TestPlanWithAsManyValuesAsATurnMayHaveRuns has a plan that no event holds twice, once to run and once to draw it.
func TestPlanWithAsManyValuesAsATurnMayHaveRuns(t *testing.T) {
	t.Parallel()
	for _, n := range []int{60_000, 99_880} {
		k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"two": gives(`{}`)})
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", calls(`two `+numbers(n)), 1)).Do)
		require.True(t, k.response().Success, k.response().Content)
	}
}

// TestProgramInsideAnotherIsApprovedUnlessAPersonHasSeenIt has a person asked for each program that needs it.
func TestProgramInsideAnotherIsApprovedUnlessAPersonHasSeenIt(t *testing.T) {
	t.Parallel()
	inner := calls(`two {}`)
	for name, c := range map[string]struct {
		agent, plan string
		asked       []string // in this order
		entered     []string
	}{
		"in one without approval": {"A", calls(`guarded {"plan": ` + inner + `}`), []string{"#0#~approve"}, []string{"#0#0"}},
		"in one that was shown":   {"B", calls(`guarded {"plan": ` + inner + `}`), []string{"#~approve"}, []string{"#0#0"}},
		"as a value":              {"B", calls(`make {}`, `guarded {"plan": "$0.output.plan"}`), []string{"#~approve", "#1#~approve"}, []string{"#0", "#1#0"}},
	} {
		for _, approved := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"make": gives(`{"plan": ` + inner + `}`), "two": echo})
				require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.plan, 1)).Do)
				for i, id := range c.asked {
					require.NotContains(t, k.names(), "e 0.tool_response")
					require.NotContains(t, k.enteredCalls(), c.entered[len(c.entered)-1])
					m := k.answers(uint64(i+2), "turn"+id+"/1", map[string]any{"approved": approved || i < len(c.asked)-1})
					require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
				}
				r := k.response()
				require.Equal(t, approved, r.Success, r.Content)
				if !approved {
					require.Equal(t, events.CodeCancelled, r.Code)
					require.NotContains(t, k.enteredCalls(), c.entered[len(c.entered)-1])
					return
				}
				require.Equal(t, c.entered, k.enteredCalls())
			})
		}
	}
}

func TestSecretThatAPlannerHasAskedForIsNotInItsPlan(t *testing.T) {
	t.Parallel()
	ring, err := secrets.Parse([]byte(secrets.NewKey()))
	require.NoError(t, err)
	k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"two": echo, "writer": gives(`"done"`), "planner": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		a, err := call.Host.Ask(ctx, tools.Question{Name: "key", Secret: true})
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Value: json.RawMessage(calls(`two {"key": ` + string(a.Value) + `}`))}, nil
	}})
	config := k.Config
	config.SecretKeys = ring
	k.Handlers = handlers.New(config)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", `{"prompt": "x"}`, 1)).Do)
	m := k.answers(2, "turn#~plan/key", "hunter2-hunter2")
	k.Handle(t.Context(), m.Message)
	require.True(t, k.response().Success, k.response().Content)
	records, err := k.store.Scan(t.Context(), subjects.TurnKey("app", "chat", "", "turn"), nil)
	require.NoError(t, err)
	for _, r := range records {
		require.NotContains(t, string(r.Data), "hunter2", r.Key)
	}
}

func TestKeyOfAPlanMayBeNamedLikeAPrompt(t *testing.T) {
	t.Parallel()
	k := newProgramKitOf(t, hostileWorkflow, map[string]toolFunc{"planner": gives(calls(`two {}`)), "writer": gives(`"done"`), "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", `{"prompt": "a note", `+strings.TrimPrefix(calls(`planned {"prompt": "x"}`), "{"), 1)).Do)
	require.True(t, k.response().Success, k.response().Content)
}
