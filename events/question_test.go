package events_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func sampleQuestion() *events.ToolCall {
	component, id := "AgentAPIKeysBundleInput", events.QuestionID("turn-1@0a1b2c3d", "1")
	return &events.ToolCall{
		Kind: events.KindToolCall, ID: id, AppID: "app", ChatID: "c", RunID: "r", Turn: "turn-1", TurnSequence: 3, Agent: "A",
		ToolName: "request_api_key", ToolCallID: id, CallID: id, Corr: id, AwaitingResponse: true, ComponentType: &component,
		Display: events.DisplayArtifact, DisplayType: events.DisplayArtifact, InteractionType: events.InteractionUITool,
		WorkflowName: "W", UserID: "u", Secret: true,
		Answer: &events.AnswerTo{
			Subject: "oneturn.in.default.tool_call_response.app.W.c", Schema: map[string]any{"type": "object"},
			ExpiresAt: noon.Add(time.Hour),
		},
		Payload: events.ToolCallPayload{Shown: map[string]any{
			"services": []any{"openai"}, "agent_message": "Keys, please", "agent_message_id": "msg_1",
			"tool_args": "the tool's own", "n": number("1.0"), "mode": "inline", "workflow_name": "Other",
		}},
	}
}

// golden are the events of questions as they travel. A change here is a change of the wire.
func golden() []struct {
	kind  string
	event any
	data  string
} {
	surface, call := sampleQuestion(), sampleCall()
	surface.AwaitingResponse, surface.Secret, surface.Answer = false, false, nil
	surface.InteractionType = events.InteractionUISurface
	surface.ID = events.QuestionID("t", events.SurfaceID("plan", 1))
	surface.ToolCallID, surface.CallID, surface.Corr = surface.ID, surface.ID, surface.ID
	surface.Payload.Shown = map[string]any{}
	return []struct {
		kind  string
		event any
		data  string
	}{
		{events.KindToolCall, sampleQuestion(), `{"kind":"tool_call","id":"turn-1@0a1b2c3d/1","app_id":"app","chat_id":"c","run_id":"r","turn":"turn-1","turn_sequence":3,` +
			`"agent":"A","tool_name":"request_api_key","tool_call_id":"turn-1@0a1b2c3d/1","call_id":"turn-1@0a1b2c3d/1","corr":"turn-1@0a1b2c3d/1","awaiting_response":true,` +
			`"component_type":"AgentAPIKeysBundleInput","display":"artifact","display_type":"artifact","interaction_type":"ui_tool","workflow_name":"W","user_id":"u","secret":true,` +
			`"answer":{"subject":"oneturn.in.default.tool_call_response.app.W.c","schema":{"type":"object"},"expires_at":"2026-01-02T13:00:00.007Z"},` +
			`"payload":{"agent_message":"Keys, please","agent_message_id":"msg_1","agent_name":"A","display":"artifact","interaction_type":"ui_tool","mode":"artifact","n":1.0,` +
			`"services":["openai"],"tool_args":"the tool's own","workflow_name":"W"}}`},
		{events.KindToolCall, surface, `{"kind":"tool_call","id":"t/s:plan","app_id":"app","chat_id":"c","run_id":"r","turn":"turn-1","turn_sequence":3,` +
			`"agent":"A","tool_name":"request_api_key","tool_call_id":"t/s:plan","call_id":"t/s:plan","corr":"t/s:plan","awaiting_response":false,` +
			`"component_type":"AgentAPIKeysBundleInput","display":"artifact","display_type":"artifact","interaction_type":"ui_surface","workflow_name":"W","user_id":"u",` +
			`"payload":{"agent_name":"A","display":"artifact","interaction_type":"ui_surface","mode":"artifact","workflow_name":"W"}}`},
		{events.KindToolCallAck, sampleQuestion().Ack(events.AckAccepted, "u2"), `{"agent":"A","app_id":"app","call_id":"turn-1@0a1b2c3d/1","chat_id":"c","corr":"turn-1@0a1b2c3d/1",` +
			`"id":"turn-1@0a1b2c3d/1","kind":"tool_call_ack","run_id":"r","status":"accepted","tool_call_id":"turn-1@0a1b2c3d/1","tool_name":"request_api_key","turn":"turn-1",` +
			`"turn_sequence":3,"user_id":"u2","workflow_name":"W"}`},
		{events.KindToolCallDismiss, sampleQuestion().Dismiss(), `{"agent":"A","app_id":"app","call_id":"turn-1@0a1b2c3d/1","chat_id":"c","corr":"turn-1@0a1b2c3d/1",` +
			`"id":"turn-1@0a1b2c3d/1","kind":"tool_call_dismiss","run_id":"r","tool_call_id":"turn-1@0a1b2c3d/1","tool_name":"request_api_key","turn":"turn-1",` +
			`"turn_sequence":3,"workflow_name":"W"}`},
		{events.KindToolProgress, &events.ToolProgress{
			Kind: events.KindToolProgress, ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolName: "n", ToolCallID: "t", Corr: "t/1",
			ProgressPercent: events.Percent(33.5), StatusMessage: "going", WorkflowName: "W",
		}, `{"agent":"A","app_id":"a","chat_id":"c","corr":"t/1","id":"t","kind":"tool_progress","progress_percent":33.5,"status_message":"going","tool_call_id":"t","tool_name":"n","turn":"t","workflow_name":"W"}`},
		{events.KindRunComplete, &events.RunComplete{
			Kind: events.KindRunComplete, ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolCallID: "t", WorkflowName: "W",
			Status: events.RunWaits, Reason: events.ReasonAwaitingInput,
		}, `{"agent":"A","app_id":"a","chat_id":"c","id":"t","kind":"run_complete","reason":"awaiting_user_input","status":0,"tool_call_id":"t","turn":"t","workflow_name":"W"}`},
		{events.KindToolCallRejected, rejected(), `{"app_id":"default","chat_id":"c","code":"invalid","errors":[{"path":"/a"}],"id":"t/1","kind":"tool_call_rejected","message":"no",` +
			`"status":422,"tool_call_id":"t/1","user_id":"u","workflow_name":"W"}`},
		{events.KindUIToolComplete, &events.UIToolComplete{
			Kind: events.KindUIToolComplete, AppID: "a", ChatID: "c", EventID: "t/1", UIToolID: "n", Display: events.DisplayInline, Status: "approved",
		}, `{"app_id":"a","chat_id":"c","display":"inline","eventId":"t/1","kind":"ui_tool_complete","status":"approved","ui_tool_id":"n"}`},
		{
			events.KindUIToolDismiss, &events.UIToolDismiss{Kind: events.KindUIToolDismiss, AppID: "a", ChatID: "c", EventID: "t/1", UIToolID: "n"},
			`{"app_id":"a","chat_id":"c","event_id":"t/1","kind":"ui_tool_dismiss","ui_tool_id":"n"}`,
		},
		{events.KindToolCall, call, `{"kind":"tool_call","id":"turn-1","app_id":"app","chat_id":"c","run_id":"r","turn":"turn-1","turn_sequence":3,"agent":"A","tool_name":"greet",` +
			`"tool_call_id":"turn-1","call_id":"turn-1","corr":"turn-1","awaiting_response":false,"component_type":"GreetCard","display":"inline","display_type":"inline",` +
			`"interaction_type":"auto_tool","workflow_name":"W","payload":{"tool_args":{"n":1.0,"name":"Al <&>"},"agent_name":"A","interaction_type":"auto_tool","workflow_name":"W","agent_message":"hi"}}`},
	}
}

func TestEventsOfQuestionsFollowTheContractAndReadBack(t *testing.T) {
	t.Parallel()
	for _, c := range golden() {
		body := encode(t, c.kind, c.event)
		require.Equal(t, `{"type":"chat.`+c.kind+`","data":`+c.data+`,"timestamp":"2026-01-02T12:00:00.007Z"}`, body, c.kind)
		m, err := events.Parse([]byte(body))
		require.NoError(t, err)
		require.NoError(t, compile(t, c.kind).Validate(m.Data), body)
		switch want := c.event.(type) {
		case *events.ToolCall:
			requireSameCall(t, want, m)
		case *events.ToolCallAck:
			requireRead(t, want, m)
		case *events.ToolCallDismiss:
			requireRead(t, want, m)
		case *events.ToolProgress:
			requireRead(t, want, m)
		case *events.RunComplete:
			requireRead(t, want, m)
		case *events.ToolCallRejected:
			requireRead(t, want, m)
		case *events.UIToolComplete:
			requireRead(t, want, m)
		case *events.UIToolDismiss:
			requireRead(t, want, m)
		default:
			require.Fail(t, "read it", "%T", c.event)
		}
	}
}

func requireRead[E any](t *testing.T, want *E, m *events.Message) {
	t.Helper()
	var got E
	require.NoError(t, m.As(&got))
	require.Equal(t, *want, got)
}

// requireSameCall compares a call with one that was read: its payload has what the event has,
// and encodes to the same.
func requireSameCall(t *testing.T, want *events.ToolCall, m *events.Message) {
	t.Helper()
	var got events.ToolCall
	require.NoError(t, m.As(&got))
	require.Equal(t, encode(t, events.KindToolCall, want), encode(t, events.KindToolCall, &got))
	require.Equal(t, want.Answer, got.Answer)
	require.Equal(t, want.WorkflowName, got.Payload.WorkflowName)
	require.Equal(t, want.Agent, got.Payload.AgentName)
	if want.Payload.Shown == nil {
		require.Equal(t, want.Payload.ToolArgs, got.Payload.ToolArgs)
		require.Nil(t, got.Payload.Shown)
		return
	}
	require.NotNil(t, got.Payload.Shown)
	require.Nil(t, got.Payload.ToolArgs)
	require.Equal(t, want.Display, got.Payload.Mode)
	for _, name := range []string{"agent_name", "interaction_type", "workflow_name", "display", "mode"} {
		require.NotContains(t, got.Payload.Shown, name)
	}
	require.Equal(t, want.Payload.Shown["tool_args"], got.Payload.Shown["tool_args"])
	require.Equal(t, want.Payload.Shown["agent_message"], got.Payload.Shown["agent_message"])
}

func TestEncodingAQuestionLeavesWhatTheToolShowsAlone(t *testing.T) {
	t.Parallel()
	q := sampleQuestion()
	encode(t, events.KindToolCall, q)
	require.Equal(t, sampleQuestion(), q)
}

func TestWhatAToolShowsIsAnObjectThatFitsIntoAnEvent(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{"", "null", "{}", " { } "} {
		m, err := events.DecodeShown(json.RawMessage(empty))
		require.NoError(t, err, empty)
		require.Equal(t, map[string]any{}, m)
	}
	for _, bad := range []string{"[]", `"text"`, "1", "{", `{"a":1,"a":2}`, "{}{}", "\xff"} {
		_, err := events.DecodeShown(json.RawMessage(bad))
		require.ErrorIs(t, err, events.ErrBadArgs, bad)
	}
	for _, c := range []struct {
		payload string
		fits    bool
	}{
		{`{"a":` + nest(events.MaxDataDepth-1) + `}`, true},
		{`{"a":` + nest(events.MaxDataDepth) + `}`, false},
		{`{"a":` + nest(events.MaxDepth) + `}`, false},
		{`{"a":[0` + strings.Repeat(",0", events.MaxNodes-103) + `]}`, true},
		{`{"a":[0` + strings.Repeat(",0", events.MaxNodes-102) + `]}`, false},
	} {
		m, err := events.DecodeShown(json.RawMessage(c.payload))
		if !c.fits {
			require.ErrorIs(t, err, events.ErrTooLarge, "%.60s", c.payload)
			continue
		}
		require.NoError(t, err, "%.60s", c.payload)
		q := sampleQuestion()
		q.Payload.Shown = m
		_, err = events.Parse([]byte(encode(t, events.KindToolCall, q)))
		require.NoError(t, err, "%.60s", c.payload)
	}
}

func TestPayloadOfAQuestionMayBeABlob(t *testing.T) {
	t.Parallel()
	q := sampleQuestion()
	q.Payload.Shown = events.Blob{Blob: "b", SHA256: strings.Repeat("0", 64), Size: 300_000}.Shown()
	body := encode(t, events.KindToolCall, q)
	require.Contains(t, body, `"payload":{"$blob":"b","agent_name":"A",`)
	require.Contains(t, body, `"size":300000,`)
}

func TestDamagedPayloadIsAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"null", "1", `"x"`, "[]"} {
		var p events.ToolCallPayload
		require.ErrorIs(t, p.UnmarshalJSON([]byte(bad)), events.ErrBadArgs, bad)
	}
	var p events.ToolCallPayload
	require.Error(t, p.UnmarshalJSON([]byte(`{"a":1,"a":2}`)))
	require.NoError(t, p.UnmarshalJSON([]byte(`{"agent_name":5,"display":null}`)), "readers of old records take what is there")
}

func TestPercentIsWhatAScreenCanShow(t *testing.T) {
	t.Parallel()
	for p, want := range map[float64]float64{0: 0, 33.3: 33.3, 100: 100, 1e9: 100, math.Inf(1): 100} {
		require.Equal(t, &want, events.Percent(p))
	}
	for _, unknown := range []float64{-1, math.Inf(-1), math.NaN()} {
		require.Nil(t, events.Percent(unknown))
	}
	require.Contains(t, encode(t, events.KindToolProgress, events.ToolProgress{}), `"progress_percent":null`)
}
