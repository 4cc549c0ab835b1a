package events_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func samplePlanStarted() *events.PlanStarted {
	return &events.PlanStarted{
		ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolName: "run_plan", ToolCallID: "t", CallID: "t", Corr: "t", WorkflowName: "W",
		Payload: events.PlanPayload{
			Reasoning: "because",
			Steps: []events.PlanStep{
				{Call: "0", ToolName: "find", Arguments: map[string]any{"n": number("1.0")}, Needs: []string{}},
				{Call: "fan[0]", ToolName: "sum", Arguments: map[string]any{"of": "$0.output.items"}, Needs: []string{"0"}, Copied: &events.CopiedCall{From: "t0#fan[0]", Code: events.CodeToolError}},
				{Call: "fan[1]", ToolName: "sum", Arguments: events.Blob{Blob: "b", SHA256: strings.Repeat("0", 64), Size: 300_000}, Needs: []string{"0"}},
			},
			Groups: []events.PlanGroup{{Call: "fan", Type: events.GroupParallel, Merge: "collect", Children: []string{"fan[0]", "fan[1]"}}},
			Limits: events.PlanLimits{Calls: 50, Parallel: 4, Depth: 3, StepTimeoutMS: 60_000, TimeoutMS: 300_000},
		},
		ProgramData: json.RawMessage(`{"steps": [], "kind":"plan"}`),
		CopiedData:  json.RawMessage(`"{}"`),
	}
}

func samplePlanFinished() *events.PlanFinished {
	return &events.PlanFinished{
		ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolName: "run_plan", ToolCallID: "t", CallID: "t", Corr: "t", WorkflowName: "W",
		Status: events.StatusError, Content: "sum failed", Code: events.CodeTimeout, Payload: json.RawMessage(`{"status":"failed"}`), DurationMS: 12,
	}
}

func TestStoredProgramReadsBackAsItWasStored(t *testing.T) {
	t.Parallel()
	want := samplePlanStarted()
	got, err := events.ReadPlanStarted([]byte(encode(t, events.KindPlanStarted, want)))
	require.NoError(t, err)
	require.JSONEq(t, string(want.ProgramData), string(got.ProgramData))
	blob, ok := events.BlobOf(got.Payload.Steps[2].Arguments)
	require.True(t, ok)
	require.Equal(t, want.Payload.Steps[2].Arguments, blob)
	want.Kind, want.ProgramData, want.Payload.Steps[2].Arguments = events.KindPlanStarted, got.ProgramData, got.Payload.Steps[2].Arguments
	require.Equal(t, want, got)

	finished := samplePlanFinished()
	read, err := events.ReadPlanFinished([]byte(encode(t, events.KindPlanFinished, finished)))
	require.NoError(t, err)
	finished.Kind, finished.Payload = events.KindPlanFinished, map[string]any{"status": "failed"}
	require.Equal(t, finished, read)

	_, err = events.ReadPlanStarted([]byte(encode(t, events.KindPlanFinished, finished)))
	require.ErrorIs(t, err, events.ErrBadArgs)
	_, err = events.ReadPlanFinished([]byte(`{`))
	require.ErrorIs(t, err, events.ErrBadArgs)
}

func TestSchemasRefuseWrongEventsOfPrograms(t *testing.T) {
	t.Parallel()
	started := compile(t, events.KindPlanStarted)
	tree := func(change func(data, payload, step, group map[string]any)) any {
		data, _ := member(t, mustDecode(t, encode(t, events.KindPlanStarted, samplePlanStarted())), "data").(map[string]any)
		payload, _ := data["payload"].(map[string]any)
		steps, _ := payload["steps"].([]any)
		groups, _ := payload["groups"].([]any)
		step, _ := steps[2].(map[string]any)
		group, _ := groups[0].(map[string]any)
		change(data, payload, step, group)
		return data
	}
	require.NoError(t, started.Validate(tree(func(_, _, _, _ map[string]any) {})))
	for name, change := range map[string]func(data, payload, step, group map[string]any){
		"without program":       func(data, _, _, _ map[string]any) { delete(data, "program_data") },
		"without steps":         func(_, payload, _, _ map[string]any) { delete(payload, "steps") },
		"step without needs":    func(_, _, step, _ map[string]any) { delete(step, "needs") },
		"step with a bad id":    func(_, _, step, _ map[string]any) { step["call"] = "a/b" },
		"blob without hash":     func(_, _, step, _ map[string]any) { step["arguments"] = map[string]any{"$blob": "b"} },
		"group of another type": func(_, _, _, group map[string]any) { group["type"] = "serial" },
		"group without merge":   func(_, _, _, group map[string]any) { delete(group, "merge") },
	} {
		require.Error(t, started.Validate(tree(change)), name)
	}
	finished, _ := member(t, mustDecode(t, encode(t, events.KindPlanFinished, samplePlanFinished())), "data").(map[string]any)
	finished["success"] = true
	require.Error(t, compile(t, events.KindPlanFinished).Validate(finished), "an error is not a success")
}
