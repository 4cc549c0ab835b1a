package worker_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// mozaiksCase is one observation of MozaiksAI's own handler.
type mozaiksCase struct {
	Name       string           `json:"name"`
	Event      json.RawMessage  `json:"event"`
	Deliveries int              `json:"deliveries"`
	Emissions  []map[string]any `json:"emissions"`
}

// emission returns what MozaiksAI emitted of a kind, nil if nothing.
func (c *mozaiksCase) emission(kind string) map[string]any {
	for _, e := range c.Emissions {
		if e["kind"] == kind {
			return e
		}
	}
	return nil
}

// deviations are the cases where MozaiksAI is wrong or silent, and our answer. What is not
// named here is as observed, but for the fields in checkCall and checkResponse.
var deviations = map[string]events.Code{
	"unknown model":               events.CodeNoBinding,
	"unknown workflow":            events.CodeNoBinding,
	"validation error wrong type": events.CodeValidationFailed,
	"structured_data null":        events.CodeValidationFailed,
}

// silent are the cases that end without a response, here as there.
var silent = map[string]string{
	"no turn key":          "dead letter missing_field",
	"auto_tool_mode false": "not a turn",
}

// TestMozaiksAICasesEndAsObservedOrRight publishes every recorded event to a worker on the
// recorded workflow folder, unchanged, and compares what comes out.
func TestMozaiksAICasesEndAsObservedOrRight(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	data, err := os.ReadFile("../../testdata/mozaiks/auto_tool_handler.json")
	require.NoError(t, err)
	var cases []mozaiksCase
	require.NoError(t, json.Unmarshal(data, &cases))
	require.NotEmpty(t, cases)

	s := server(t)
	start(t, s, oneturn.Config{Workflows: "../../testdata/mozaiks/workflows", BindingGrace: time.Millisecond})
	c, nc := client(t, s), s.Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	dead, err := nc.SubscribeSync(space.DeadSubjects())
	require.NoError(t, err)

	for i := range cases { //nolint:paralleltest // the cases share one worker, in file order
		o := &cases[i]
		t.Run(o.Name, func(t *testing.T) {
			if _, ok := silent[o.Name]; ok {
				publishRaw(t, nc, space, o.Event)
				if o.Name == "no turn key" {
					m, err := dead.NextMsg(10 * time.Second)
					require.NoError(t, err)
					require.Equal(t, "missing_field", m.Header.Get("Oneturn-Reason"))
					require.JSONEq(t, string(o.Event), string(m.Data))
				}
				return
			}
			calls, err := nc.SubscribeSync(space.EventsOfKind(events.KindToolCall))
			require.NoError(t, err)
			require.NoError(t, nc.Flush())
			defer func() { require.NoError(t, calls.Unsubscribe()) }()
			var published *oneturn.Turn
			for range o.Deliveries {
				published, _, err = c.PublishRaw(t.Context(), o.Event)
				require.NoError(t, err)
			}
			r := await(t, c, published.TurnID)
			m, err := calls.NextMsg(10 * time.Second)
			require.NoError(t, err)
			body, err := events.Parse(m.Data)
			require.NoError(t, err)
			if code, ok := deviations[o.Name]; ok {
				require.Equal(t, code, r.Code)
				require.False(t, r.Success)
				require.Equal(t, true, body.Data["rejected"])
				return
			}
			checkCall(t, o.emission(events.KindToolCall), body.Data)
			checkResponse(t, o, r, responseEvent(t, s, published.TurnID))
			if o.Deliveries > 1 {
				_, err = calls.NextMsg(300 * time.Millisecond)
				require.ErrorIs(t, err, nats.ErrTimeout, "one call for %d deliveries", o.Deliveries)
			}
		})
	}
}

// publishRaw publishes an event that the client would refuse.
func publishRaw(t *testing.T, nc *nats.Conn, space subjects.Space, event []byte) {
	t.Helper()
	m, err := nc.Request(space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "WF", "c1"), event, 5*time.Second)
	require.NoError(t, err)
	require.NotContains(t, string(m.Data), "error")
}

// checkCall compares a tool_call. Ours has more: the workflow's name, ids of the turn.
func checkCall(t *testing.T, want, got map[string]any) {
	t.Helper()
	require.NotNil(t, want)
	for _, field := range []string{"kind", "agent", "tool_name", "tool_call_id", "corr", "awaiting_response", "component_type"} {
		require.Equal(t, want[field], got[field], field)
	}
	wantPayload, gotPayload := object(t, want["payload"]), object(t, got["payload"])
	require.Equal(t, "WF", gotPayload["workflow_name"])
	for field, value := range wantPayload {
		if field != "workflow_name" { // MozaiksAI looks for it in the wrong place
			requireSameJSON(t, value, gotPayload[field], field)
		}
	}
}

func checkResponse(t *testing.T, o *mozaiksCase, r *oneturn.Response, e *events.ToolResponse) {
	t.Helper()
	want := o.emission(events.KindToolResponse)
	require.NotNil(t, want)
	require.Equal(t, want["agent"], r.Agent)
	require.Equal(t, want["tool_name"], r.Tool)
	require.Equal(t, want["call_id"], e.CallID)
	require.Equal(t, want["corr"], e.Corr)
	require.Equal(t, want["interaction_type"], e.InteractionType)
	switch o.Name {
	case "concurrent duplicates of a slow tool run three times":
		require.True(t, r.Success)
		requireSameJSON(t, map[string]any{"n": 1}, r.Payload, "payload") // ran once
		return
	case "auto-invoked Agent_Tool that takes fewer fields than the model: tool never runs but success true":
		require.True(t, r.Success)
		requireSameJSON(t, map[string]any{"status": "success", "ran": true}, r.Payload, "payload") // really ran
		return
	}
	require.Equal(t, want["status"] == events.StatusOK, r.Code == "")
	require.Equal(t, want["success"], r.Success)
	require.Equal(t, want["content"], r.Content)
	if r.Code != "" { // ours adds the code
		require.Equal(t, object(t, want["payload"])["message"], object(t, r.Payload)["message"])
		return
	}
	requireSameJSON(t, want["payload"], r.Payload, "payload")
}

func object(t *testing.T, v any) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok, "%T is not an object", v)
	return m
}

func requireSameJSON(t *testing.T, want, got any, field string) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b), field)
}
