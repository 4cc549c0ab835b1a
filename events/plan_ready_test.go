package events_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

const planBody = `{"kind":"plan_ready","agent":"old name","agent_name":"A","model_name":"ignored","auto_tool_mode":false,"structured_data":{"x":1},
 "plan":{"type":"tool_calls","calls":[],"n":1.0},"turn_idempotency_key":"turn-1","run_id":"r","correction_of":"turn-0",
 "context":{"chat_id":"c","app_id":"app","workflow_name":"WF","user_id":"u","turn_sequence":12,"context_variables":{"x":1}}}`

func wantPlan() *events.StructuredOutputReady {
	return &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: "app", Chat: "c", Run: "r", Turn: "turn-1"},
		Workflow: "WF", Agent: "A", Model: events.ModelPlan, AutoToolMode: true, UserID: "u", TurnSequence: 12, CorrectionOf: "turn-0", Plan: true,
		Data:             map[string]any{"type": "tool_calls", "calls": []any{}, "n": number("1.0")},
		ContextVariables: map[string]any{"x": number("1")},
	}
}

func TestPlanIsATurnOfTheModelPlan(t *testing.T) {
	t.Parallel()
	for _, body := range []string{planBody, `{"type":"chat.plan_ready","data":` + planBody + `}`} {
		got, err := events.DecodeTurn([]byte(body))
		require.NoError(t, err)
		require.Equal(t, wantPlan(), got)
		require.Equal(t, events.KindPlanReady, got.InboundKind())
	}
	again, err := events.EncodeTurn(wantPlan(), noon)
	require.NoError(t, err)
	require.Contains(t, string(again), `{"type":"chat.plan_ready","data":{"kind":"plan_ready","agent":"A","plan":{`)
	got, err := events.DecodeTurn(again)
	require.NoError(t, err)
	want := wantPlan()
	want.Timestamp = noon
	require.Equal(t, want, got)
}

func TestPlanHasTheFingerprintOfTheSameDataForTheModelPlan(t *testing.T) {
	t.Parallel()
	output := wantPlan()
	output.Plan = false
	require.Equal(t, events.KindStructuredOutputReady, output.InboundKind())
	require.Equal(t, events.Fingerprint(output), events.Fingerprint(wantPlan()))
	m, err := events.Parse([]byte(`{"structured_data":{"x":1},"kind":"plan_ready","plan":{"y":2},"chat_id":"c","turn_idempotency_key":"t"}`))
	require.NoError(t, err)
	turn, err := m.PlanReady()
	require.NoError(t, err)
	data, fingerprint := m.CanonicalData(turn)
	require.JSONEq(t, `{"y":2}`, string(data), "structured data of a plan_ready event does not count")
	require.Equal(t, events.Fingerprint(turn), fingerprint)
}

func TestPlanIsDecodedAsStrictlyAsAnyTurn(t *testing.T) {
	t.Parallel()
	const ids = `"kind":"plan_ready","chat_id":"c","turn_idempotency_key":"t",`
	for body, want := range map[string]string{
		`{"kind":"plan_ready","plan":{},"chat_id":"c"}`:                               "turn_idempotency_key is missing",
		`{"kind":"plan_ready","plan":{},"turn_idempotency_key":"t"}`:                  "chat_id is missing",
		`{` + ids + `"plan":` + nest(57) + `}`:                                        "plan is nested more than 56 deep",
		`{` + ids + `"agent":1}`:                                                      "agent is a number",
		`{` + ids + `"plan":{},"plan":{}}`:                                            "duplicate key",
		`{` + ids + `"context":[]}`:                                                   "context is an array",
		`{"type":"chat.plan_ready","data":{` + ids + `"plan":1},"timestamp":"today"}`: "timestamp is a string",
	} {
		_, err := events.DecodeTurn([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
		require.ErrorContains(t, err, want)
	}
	m, err := events.Parse([]byte(planBody))
	require.NoError(t, err)
	_, err = m.Turn()
	require.ErrorContains(t, err, `kind is "plan_ready": expected "structured_output_ready"`)
	m, err = events.Parse([]byte(newBody))
	require.NoError(t, err)
	_, err = m.PlanReady()
	require.ErrorContains(t, err, `kind is "structured_output_ready": expected "plan_ready"`)
	require.True(t, events.TurnKind(events.KindPlanReady))
	require.True(t, events.TurnKind(events.KindStructuredOutputReady))
	require.False(t, events.TurnKind(events.KindCancel))
}
