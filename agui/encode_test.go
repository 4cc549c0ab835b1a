package agui_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
)

func TestEventsAreOneLineOfJSON(t *testing.T) {
	t.Parallel()
	for _, e := range samples() {
		b := encode(t, e)
		require.True(t, json.Valid(b), "%s", b)
		require.NotContains(t, string(b), "\n")
		require.NotContains(t, string(b), "\r")
	}
}

func TestValuesAreWrittenAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{map[string]any(nil), `{}`},
		{map[string]any{"b": 1, "a": []any{nil, false, ""}}, `{"a":[null,false,""],"b":1}`},
		{json.Number("1.50"), `1.50`},
		{[]any{json.Number("12345678901234567890")}, `[12345678901234567890]`},
		{json.RawMessage("{ \"a\" :\r\n 1.0 }"), `{"a":1.0}`},
		{json.RawMessage(nil), `null`},
		{"<a href='&'> \u2028 \xff \r\n", "\"<a href='&'> \u2028 \ufffd \\r\\n\""},
		{int64(1790000000123), `1790000000123`},
	} {
		require.Equal(t, `{"type":"CUSTOM","name":"x","value":`+c.want+`}`, string(encode(t, &agui.Custom{Name: "x", Value: c.value})))
		patch := agui.Patch{agui.Add("/a", c.value)}
		require.Equal(t, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":`+c.want+`}]}`, string(encode(t, &agui.StateDelta{Delta: patch})))
	}
}

func TestOptionalFieldsAreNeverNull(t *testing.T) {
	t.Parallel()
	for _, nothing := range []any{nil, json.RawMessage(nil), json.RawMessage("null"), (*int)(nil)} {
		b := encode(t, &agui.RunFinished{ThreadID: "t", RunID: "r", Result: nothing, Base: agui.Base{RawEvent: nothing}})
		require.JSONEq(t, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`, string(b))
	}
}

func TestEventsThatCannotBeEncodedAreErrors(t *testing.T) {
	t.Parallel()
	for _, value := range []any{json.RawMessage(`{`), json.RawMessage(`{"a":1,"a":2}`), json.Number("1e"), make(chan int), func() {}} {
		_, err := (&agui.Custom{Name: "x", Value: value}).MarshalJSON()
		require.ErrorContains(t, err, "encode CUSTOM")
	}
	_, err := (&agui.MessagesSnapshot{Messages: []agui.Message{{ID: "m", Role: "robot"}}}).MarshalJSON()
	require.ErrorContains(t, err, "unknown role")
	_, err = (&agui.StateDelta{Delta: agui.Patch{{Op: "set", Path: "/a"}}}).MarshalJSON()
	require.ErrorContains(t, err, "unknown patch operation")
}

// A server may store events, or put them into other JSON.
func TestStandardEncoderWritesTheTypeToo(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal([]agui.Event{&agui.StepStarted{StepName: "s"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"STEP_STARTED","stepName":"s"}]`, string(b))
}

func TestPointersAreEscaped(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/turns/a~1b~0c/", agui.Pointer("turns", "a/b~c", ""))
	require.Empty(t, agui.Pointer())
}

func TestPatchesThatClientsRefuseAreErrors(t *testing.T) {
	t.Parallel()
	for _, bad := range []agui.PatchOp{
		{},
		agui.Add("a", 1), agui.Add("/a~", 1), agui.Add("/a~2b", 1), agui.Move("b", "/a"), agui.Move("/a", "b"),
		agui.Move("/a", "/a/b"), agui.Move("", "/a"),
		{Op: "copy", From: "~", Path: "/a"},
	} {
		_, err := bad.MarshalJSON()
		require.Error(t, err, "%+v", bad)
	}
	_, err := agui.Move("/a", "/ab").MarshalJSON()
	require.NoError(t, err)
}

func TestContentIsATextOrParts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`""`, `"a\nb"`, `[]`, `[{"type":"text","text":""}]`, `[{"type":"binary","mimeType":"image/png","data":"aGk="}]`} {
		var c agui.Content
		require.NoError(t, json.Unmarshal([]byte(text), &c))
		b, err := json.Marshal(c)
		require.NoError(t, err)
		require.JSONEq(t, text, string(b))
	}
	c := agui.Content{Parts: []agui.ContentPart{agui.TextPart("a"), {Type: agui.PartImage}, agui.TextPart("b")}}
	require.Equal(t, "a\nb", c.String())
	require.Equal(t, "x", agui.Text("x").String())
}

func TestMessagesHaveTheFieldsOfTheirRole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message agui.Message
		want    string
	}{
		{agui.UserMessage("u", ""), `{"id":"u","role":"user","content":""}`},
		{agui.AssistantMessage("a", ""), `{"id":"a","role":"assistant"}`},
		{
			agui.AssistantMessage("a", "", agui.Call("c", "f", "{}")),
			`{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		},
		{agui.ToolMessage("r", "c", ""), `{"id":"r","role":"tool","content":"","toolCallId":"c"}`},
		{agui.Message{ID: "v", Role: agui.RoleActivity}, `{"id":"v","role":"activity","content":{},"activityType":""}`},
		{
			agui.Message{ID: "a", Role: agui.RoleAssistant, Content: agui.Content{Parts: []agui.ContentPart{agui.TextPart("x")}}, ToolCallID: "c", Error: "e"},
			`{"id":"a","role":"assistant","content":"x"}`,
		},
	} {
		b, err := json.Marshal(c.message)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(b))
		var again agui.Message
		require.NoError(t, json.Unmarshal(b, &again))
		b2, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(b), string(b2))
	}
}

func TestIDsOfCallsAreStable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "tc_t9", agui.CallID("t9", ""))
	require.Equal(t, "tc_t9_s1", agui.CallID("t9", "s1"))
	require.Equal(t, "msg_t9", agui.MessageID("t9"))
	require.Equal(t, "res_c", agui.ResultID("c"))
	require.Equal(t, "act_c", agui.ActivityID("c"))
	require.Equal(t, "turn:t9", agui.StepName("t9"))
	call, ok := agui.CallOfInterrupt(agui.InterruptID("c"))
	require.True(t, ok)
	require.Equal(t, "c", call)
	for _, other := range []string{"", "c", "int_", "res_c"} {
		_, ok := agui.CallOfInterrupt(other)
		require.False(t, ok, other)
	}
}
