package events_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func compile(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	raw, ok := events.Schema(kind)
	require.True(t, ok, kind)
	mustDecode(t, string(raw))
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	require.NoError(t, c.AddResource("urn:oneturn:event:"+kind, strings.NewReader(string(raw))))
	schema, err := c.Compile("urn:oneturn:event:" + kind)
	require.NoError(t, err, kind)
	return schema
}

// outbound are the kinds that oneturn writes, with an example of each.
func outbound() map[string]any {
	return map[string]any{
		events.KindToolCall:     sampleCall(),
		events.KindToolResponse: sampleResponse(),
		events.KindTurnConflict: &events.TurnConflict{
			ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", WorkflowName: "W", Fingerprint: strings.Repeat("0", 64),
		},
		events.KindToolCallCancel: &events.ToolCallCancel{
			ID: "t", AppID: "a", ChatID: "c", Turn: "t", ToolCallID: "t", WorkflowName: "W", Reason: "why", UserID: "u",
		},
		events.KindToolCallAck:     sampleQuestion().Ack(events.AckAccepted, "u"),
		events.KindToolCallDismiss: sampleQuestion().Dismiss(),
		events.KindToolProgress: &events.ToolProgress{
			ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolName: "n", ToolCallID: "t", Corr: "t/1",
			ProgressPercent: events.Percent(12.5), StatusMessage: "going", WorkflowName: "W",
		},
		events.KindRunComplete: &events.RunComplete{
			ID: "t", AppID: "a", ChatID: "c", Turn: "t", Agent: "A", ToolCallID: "t", WorkflowName: "W",
			Status: events.RunWaits, Reason: events.ReasonAwaitingInput,
		},
		events.KindToolCallRejected: rejected(),
		events.KindPlanStarted:      samplePlanStarted(),
		events.KindPlanFinished:     samplePlanFinished(),
		events.KindText:             sampleText(),
		events.KindUserMessage:      sampleText(),
		events.KindContextUpdate: &events.ContextUpdate{
			ID: "m", AppID: "a", ChatID: "c", MessageID: "m", Agent: "A", WorkflowName: "W", Variable: "v", Value: true,
		},
		events.KindStructuredOutput: &events.StructuredOutput{
			ID: "m", AppID: "a", ChatID: "c", MessageID: "m", Agent: "A", WorkflowName: "W", Model: "M", Status: events.StatusOK, Success: true,
			Payload: map[string]any{"a": true},
		},
		events.KindHandoff: &events.Handoff{
			ID: "m", AppID: "a", ChatID: "c", MessageID: "m", WorkflowName: "W", From: "A", To: new("B"), Rule: new(0), Reason: "condition",
			Via: []events.Via{{Agent: "C", Rule: 1}},
		},
		events.KindMessageConflict: &events.MessageConflict{
			ID: "m", AppID: "a", ChatID: "c", MessageID: "m", Agent: "A", WorkflowName: "W", Fingerprint: strings.Repeat("0", 64),
		},
		events.KindUIToolComplete: &events.UIToolComplete{
			AppID: "a", ChatID: "c", EventID: "t/1", UIToolID: "n", Display: events.DisplayInline, Status: "approved", Summary: "s",
		},
		events.KindUIToolDismiss: &events.UIToolDismiss{AppID: "a", ChatID: "c", EventID: "t/1", UIToolID: "n"},
	}
}

func TestEveryEncodedEventFitsItsSchemaAndTheEnvelope(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{}
	for kind, event := range outbound() {
		bodies[kind] = encode(t, kind, event)
	}
	turn, err := events.EncodeTurn(wantTurn(), noon)
	require.NoError(t, err)
	bodies[events.KindStructuredOutputReady] = string(turn)
	plan, err := events.EncodeTurn(wantPlan(), noon)
	require.NoError(t, err)
	bodies[events.KindPlanReady] = string(plan)
	retry, err := events.EncodeTurn(wantRetry(), noon)
	require.NoError(t, err)
	bodies[events.KindRetry] = string(retry)
	cancel, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{Chat: "c", Turn: "t"}}, noon)
	require.NoError(t, err)
	bodies[events.KindCancel] = string(cancel)
	resume, err := events.EncodeResume(&events.Resume{TurnID: events.TurnID{Chat: "c", Turn: "t"}}, noon)
	require.NoError(t, err)
	bodies[events.KindResume] = string(resume)

	message, err := events.EncodeMessage(&events.AgentMessage{TurnID: events.TurnID{Chat: "c"}, ID: "m", Agent: "A", Content: "NEXT"}, noon)
	require.NoError(t, err)
	bodies[events.KindAgentMessage] = string(message)

	answer, err := events.EncodeAnswer(sampleAnswer(), noon)
	require.NoError(t, err)
	bodies[events.KindToolCallResponse] = string(answer)
	expire, err := events.EncodeExpire(sampleExpire(), noon)
	require.NoError(t, err)
	bodies[events.KindExpire] = string(expire)

	files, err := os.ReadDir("schemas")
	require.NoError(t, err)
	require.Len(t, files, len(bodies)+1, "each schema but the envelope has an event here")
	envelope := compile(t, "envelope")
	for kind, body := range bodies {
		v := mustDecode(t, body)
		require.NoError(t, envelope.Validate(v), kind)
		require.NoError(t, compile(t, kind).Validate(member(t, v, "data")), kind)
	}
}

func member(t *testing.T, v any, key string) any {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok)
	require.Contains(t, m, key)
	return m[key]
}

func TestSchemasNameTheMembersOfTheGoTypes(t *testing.T) {
	t.Parallel()
	for kind, event := range outbound() {
		raw, _ := events.Schema(kind)
		schema := mustDecode(t, string(raw))
		requireMembers(t, schema, reflect.TypeOf(event).Elem())
		if kind == events.KindToolCall {
			payload := member(t, member(t, schema, "properties"), "payload")
			requireMembers(t, payload, reflect.TypeFor[events.ToolCallPayload]())
		}
		if kind == events.KindPlanStarted {
			payload := member(t, member(t, schema, "properties"), "payload")
			requireMembers(t, payload, reflect.TypeFor[events.PlanPayload]())
			parts := member(t, payload, "properties")
			requireMembers(t, member(t, member(t, parts, "steps"), "items"), reflect.TypeFor[events.PlanStep]())
			requireMembers(t, member(t, member(t, parts, "groups"), "items"), reflect.TypeFor[events.PlanGroup]())
			limits := member(t, parts, "limits")
			require.Len(t, member(t, limits, "properties"), reflect.TypeFor[events.PlanLimits]().NumField())
		}
	}
}

func has(v any, name string) bool {
	m, _ := v.(map[string]any)
	_, ok := m[name]
	return ok
}

// requireMembers compares properties and required of a schema with the JSON tags of a struct.
func requireMembers(t *testing.T, schema any, event reflect.Type) {
	t.Helper()
	all, needed := make([]any, 0, event.NumField()), []any{}
	for field := range event.Fields() {
		name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		all = append(all, name)
		if rest == "" && name != "tool_args" { // that one is required of claims only
			needed = append(needed, name)
		}
	}
	properties, ok := member(t, schema, "properties").(map[string]any)
	require.True(t, ok)
	names := make([]any, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	require.ElementsMatch(t, all, names, event.Name())
	require.ElementsMatch(t, needed, member(t, schema, "required"), event.Name())
}

func TestSchemasRefuseWrongEvents(t *testing.T) {
	t.Parallel()
	changed := func(kind string, event any, change func(m map[string]any)) any {
		m, ok := member(t, mustDecode(t, encode(t, kind, event)), "data").(map[string]any)
		require.True(t, ok)
		change(m)
		return m
	}
	for kind, event := range outbound() {
		schema := compile(t, kind)
		for _, name := range []string{"id", "app_id", "chat_id", "turn", "workflow_name", "kind"} {
			if m := changed(kind, event, func(map[string]any) {}); !has(m, name) {
				continue // events of the older names have fewer
			}
			require.Error(t, schema.Validate(changed(kind, event, func(m map[string]any) { delete(m, name) })), "%s without %s", kind, name)
			require.Error(t, schema.Validate(changed(kind, event, func(m map[string]any) { m[name] = true })), "%s with wrong %s", kind, name)
		}
		require.Error(t, schema.Validate(changed(kind, event, func(m map[string]any) { m["chat_id"] = "a\x00" })), kind)
	}
	for _, c := range []struct{ kind, doc string }{
		{events.KindStructuredOutputReady, `{"structured_data":{},"auto_tool_mode":true,"turn_idempotency_key":"t"}`},
		{events.KindStructuredOutputReady, `{"structured_data":{},"auto_tool_mode":true,"chat_id":"c"}`},
		{events.KindStructuredOutputReady, `{"structured_data":{},"auto_tool_mode":true,"chat_id":"","turn_idempotency_key":"t"}`},
		{events.KindStructuredOutputReady, `{"structured_data":{},"auto_tool_mode":"true"}`},
		{events.KindStructuredOutputReady, `{"structured_data":{},"auto_tool_mode":false,"context":[]}`},
		{events.KindPlanReady, `{"plan":{},"turn_idempotency_key":"t"}`},
		{events.KindPlanReady, `{"plan":{},"chat_id":"c"}`},
		{events.KindPlanReady, `{"turn_idempotency_key":"t","chat_id":"c"}`},
		{events.KindPlanReady, `{"kind":"structured_output_ready","plan":{},"turn_idempotency_key":"t","chat_id":"c"}`},
		{events.KindRetry, `{"resume_of":"t","chat_id":"c"}`},
		{events.KindRetry, `{"resume_of":"t","turn_idempotency_key":"t2"}`},
		{events.KindRetry, `{"resume_of":"","turn_idempotency_key":"t2","chat_id":"c"}`},
		{events.KindRetry, `{"turn_idempotency_key":"t2","chat_id":"c"}`},
		{events.KindRetry, `{"resume_of":"t","turn_idempotency_key":"t2","chat_id":"c","rerun":[""]}`},
		{events.KindCancel, `{"chat_id":"c"}`},
		{events.KindCancel, `{"turn":"t"}`},
		{events.KindCancel, `{"turn":"t","chat_id":"c","reason":5}`},
		{events.KindToolCallResponse, `{"tool_call_id":"t/1","response":1}`},
		{events.KindToolCallResponse, `{"chat_id":"c","response":1}`},
		{events.KindToolCallResponse, `{"chat_id":"c","tool_call_id":"t/1"}`},
		{events.KindExpire, `{"chat_id":"c","key":"a.b.c.0"}`},
		{events.KindExpire, `{"chat_id":"c","ask":"1"}`},
		{events.KindExpire, `{"key":"a.b.c.0","ask":"1"}`},
		{"envelope", `{"type":"tool_call","data":{"kind":"tool_call"},"timestamp":"2026-01-02T03:04:05Z"}`},
		{"envelope", `{"type":"chat.tool_call","data":{},"timestamp":"2026-01-02T03:04:05Z"}`},
		{"envelope", `{"type":"chat.tool_call","data":{"kind":"tool_call"},"timestamp":"2026-01-02"}`},
	} {
		require.Error(t, compile(t, c.kind).Validate(mustDecode(t, c.doc)), c.doc)
	}
	call := compile(t, events.KindToolCall)
	require.NoError(t, call.Validate(changed(events.KindToolCall, sampleQuestion(), func(map[string]any) {})))
	for name, change := range map[string]func(m map[string]any){
		"question without component":         func(m map[string]any) { m["component_type"] = nil },
		"question without a way to answer":   func(m map[string]any) { delete(m, "answer") },
		"answer without subject":             func(m map[string]any) { m["answer"] = map[string]any{} },
		"question without display":           func(m map[string]any) { delete(m, "display_type") },
		"payload without the name of a flow": func(m map[string]any) { m["payload"] = map[string]any{"display": "", "mode": ""} },
		"rejected question":                  func(m map[string]any) { m["rejected"], m["code"] = true, "expired" },
		"claim without arguments": func(m map[string]any) {
			m["interaction_type"] = "auto_tool"
			delete(m, "answer")
			m["awaiting_response"] = false
		},
	} {
		require.Error(t, call.Validate(changed(events.KindToolCall, sampleQuestion(), change)), name)
	}
	response := compile(t, events.KindToolResponse)
	for name, change := range map[string]func(m map[string]any){
		"unknown code":            func(m map[string]any) { m["code"] = "oops" },
		"failed with success":     func(m map[string]any) { m["status"] = "error" },
		"blob without hash":       func(m map[string]any) { m["payload"] = map[string]any{"$blob": "b"} },
		"failure without errors":  func(m map[string]any) { m["code"] = "validation_failed" },
		"attempts that are float": func(m map[string]any) { m["attempts"] = number("1.5") },
	} {
		require.Error(t, response.Validate(changed(events.KindToolResponse, sampleResponse(), change)), name)
	}
	failure := changed(events.KindToolResponse, sampleResponse(), func(m map[string]any) {
		m["status"], m["success"], m["code"] = "error", false, string(events.CodeValidationFailed)
		m["payload"] = map[string]any{"errors": []any{}, "feedback": "fix it"}
	})
	require.NoError(t, response.Validate(failure))
}

func TestSchemasAcceptTheTurnsThatDecodeTurnAccepts(t *testing.T) {
	t.Parallel()
	schema := compile(t, events.KindStructuredOutputReady)
	for _, doc := range []string{
		newBody,
		`{"structured_data":null,"auto_tool_mode":true,"chat_id":12,"turn_idempotency_key":"t","context":null}`,
		`{"structured_data":[1],"auto_tool_mode":true,"context":{"chat_id":"c","turn_idempotency_key":"t","enterprise_id":"e"}}`,
		`{"structured_data":1,"auto_tool_mode":false}`,
	} {
		require.NoError(t, schema.Validate(mustDecode(t, doc)), doc)
		_, err := events.DecodeTurn([]byte(doc))
		require.NoError(t, err, doc)
	}
}

func TestSchemaKnowsOnlyItsKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "nope", "../schema", "schemas/cancel", "cancel.json"} {
		raw, ok := events.Schema(kind)
		require.False(t, ok, kind)
		require.Equal(t, json.RawMessage(nil), raw)
	}
}

// TestSchemaListsEveryCode keeps the codes of the schemas and of the package the same.
func TestSchemaListsEveryCode(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{events.KindToolCall, events.KindToolResponse, events.KindPlanFinished} {
		raw, _ := events.Schema(kind)
		code := member(t, member(t, member(t, mustDecode(t, string(raw)), "properties"), "code"), "enum")
		require.ElementsMatch(t, []any{
			string(events.CodeBadArgs), string(events.CodeUserError), string(events.CodeToolError), string(events.CodeTimeout),
			string(events.CodeGuardrail), string(events.CodeUnknownTool), string(events.CodeNoBinding), string(events.CodeValidationFailed),
			string(events.CodeInterrupted), string(events.CodeCancelled), string(events.CodeExpired), string(events.CodeTooOld),
			string(events.CodeTooLarge), string(events.CodeStateCorrupt),
		}, code)
	}
}
