package events_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func sampleAnswer() *events.ToolCallResponse {
	return &events.ToolCallResponse{
		TurnID: events.TurnID{App: "app", Chat: "c", Run: "r", Turn: "t"}, Workflow: "W", ToolCallID: "t/1", UserID: "u",
		Value: map[string]any{"status": "approved", "n": number("1.0")},
	}
}

func TestAnswerIsReadBackAsItWasSent(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*events.ToolCallResponse){
		func(*events.ToolCallResponse) {},
		func(r *events.ToolCallResponse) { r.Value = nil },
		func(r *events.ToolCallResponse) { r.Value = "" },
		func(r *events.ToolCallResponse) { r.Value = []any{false} },
		func(r *events.ToolCallResponse) { r.Run, r.Turn, r.UserID, r.Workflow = "", "", "", "" },
		func(r *events.ToolCallResponse) { r.ToolCallID = strings.Repeat("x", events.MaxCallIDBytes) },
	} {
		want := sampleAnswer()
		change(want)
		body, err := events.EncodeAnswer(want, noon)
		require.NoError(t, err)
		got, err := events.DecodeAnswer(body)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	body, err := events.EncodeAnswer(sampleAnswer(), noon)
	require.NoError(t, err)
	want := `{"type":"chat.tool_call_response","data":{"kind":"tool_call_response","tool_call_id":"t/1","turn":"t","run_id":"r",` +
		`"response":{"n":1.0,"status":"approved"},"context":{"app_id":"app","chat_id":"c","workflow_name":"W","user_id":"u"}},"timestamp":"2026-01-02T12:00:00.007Z"}`
	require.Equal(t, want, string(body), "also the order counts")
	for name, r := range map[string]*events.ToolCallResponse{
		"no chat":     {ToolCallID: "t/1"},
		"no question": {TurnID: events.TurnID{Chat: "c"}},
		"long id":     {TurnID: events.TurnID{Chat: "c"}, ToolCallID: strings.Repeat("x", events.MaxCallIDBytes+1)},
		"no tree":     {TurnID: events.TurnID{Chat: "c"}, ToolCallID: "t/1", Value: 1.5},
	} {
		_, err := events.EncodeAnswer(r, noon)
		require.ErrorIs(t, err, events.ErrBadArgs, name)
	}
	large := sampleAnswer()
	large.Value = strings.Repeat("x", events.MaxAnswerBytes)
	_, err = events.EncodeAnswer(large, noon)
	require.ErrorIs(t, err, events.ErrTooLarge)
}

func TestAnswersOfAllGenerationsDecodeToTheSame(t *testing.T) {
	t.Parallel()
	ok := map[string]any{"status": "ok"}
	for _, c := range []struct {
		body  string
		value any
	}{
		{`{"type":"chat.tool_call_response","data":{"kind":"tool_call_response","tool_call_id":"t/1","response":{"status":"ok"},"context":{"chat_id":"c"}},"timestamp":"2026-01-02T03:04:05Z"}`, ok},
		{`{"type":"tool_call_response","data":{"tool_call_id":"t/1","chat_id":"c","payload":{"status":"ok"}}}`, ok},
		{`{"tool_call_id":"t/1","chat_id":"c","response":{"status":"ok"}}`, ok},
		{`{"kind":"ui_tool_response","eventId":"t/1","ui_tool_id":"other","chat_id":"c","response":{"status":"ok"}}`, ok},
		{`{"type":"ui_tool_response","eventId":"t/1","chat_id":"c","response":{"status":"ok"}}`, ok},
		{`{"type":"ui_tool_response","data":null,"ui_tool_id":"t/1","chat_id":"c","response":{"status":"ok"}}`, ok},
		{`{"event_id":"t/1","response_data":{"status":"ok"},"chat_id":"c","call_id":"other"}`, ok},
		{`{"kind":"ui_tool_complete","corr":"t/1","ui_tool_id":"x","chat_id":"c","result":{"status":"ok"},"status":"completed"}`, ok},
		{`{"kind":"ui_tool_complete","call_id":"t/1","chat_id":"c","status":"ok"}`, ok},
		{`{"type":"user.input.submit","chat_id":"c","text":"yes","request_id":"t/1"}`, "yes"},
		{`{"kind":"user_input_submit","chat_id":"c","text":"","request_id":"t/1"}`, ""},
		{`{"type":"chat.user.input.submit","data":{"context":{"chat_id":"c"},"text":"yes","request_id":"t/1"}}`, "yes"},
		{`{"kind":"ui_tool_dismiss","event_id":"t/1","chat_id":"c","ui_tool_id":"x"}`, map[string]any{"status": "dismissed"}},
		{`{"kind":"ui_tool_dismiss","event_id":"t/1","chat_id":"c","status":"gone"}`, map[string]any{"status": "dismissed"}},
		{`{"kind":"ui_tool_dismiss","event_id":"t/1","chat_id":"c","response":0}`, number("0")},
		{`{"tool_call_id":"t/1","chat_id":"c","status":"cancelled"}`, map[string]any{"status": "cancelled"}},
		{`{"tool_call_id":"t/1","chat_id":"c","response":null}`, nil},
		{`{"tool_call_id":"t/1","chat_id":"c","response":null,"payload":null,"status":"x"}`, nil},
		{`{"tool_call_id":"t/1","chat_id":"c","response":null,"text":"later"}`, "later"},
		{`{"tool_call_id":null,"eventId":"","corr":"t/1","chat_id":"c","response":false,"text":"later"}`, false},
	} {
		m, err := events.Parse([]byte(c.body))
		require.NoError(t, err, c.body)
		require.True(t, m.Kind == "" || events.AnswerKind(m.Kind), c.body)
		got, err := m.Answer()
		require.NoError(t, err, c.body)
		require.Equal(t, &events.ToolCallResponse{TurnID: events.TurnID{App: "default", Chat: "c"}, ToolCallID: "t/1", Value: c.value}, got, c.body)
		require.NoError(t, compile(t, events.KindToolCallResponse).Validate(m.Data), c.body)
	}
	got, err := events.DecodeAnswer([]byte(`{"tool_call_id":7,"response":1,"chat_id":"other","run_id":1,"context":{"chat_id":8,"enterprise_id":"e","user_id":9,"workflow_name":"W","turn_idempotency_key":"t"},"user_id":"evil"}`))
	require.NoError(t, err)
	require.Equal(t, &events.ToolCallResponse{
		TurnID: events.TurnID{App: "e", Chat: "8", Run: "1", Turn: "t"}, Workflow: "W", ToolCallID: "7", UserID: "9", Value: number("1"),
	}, got)
}

func TestHostileAnswersAreRefusedByName(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                                                     "the document ends",
		`[]`:                                                   "expected an object",
		`{"kind":"cancel"}`:                                    `kind is "cancel"`,
		`{"type":"chat.ui_tool_response","x":1}`:               "data is null or absent",
		`{"tool_call_id":"t/1","response":1}`:                  "chat_id is missing",
		`{"chat_id":"c","response":1}`:                         "tool_call_id is missing",
		`{"chat_id":"c","text":"hello"}`:                       "tool_call_id is missing",
		`{"chat_id":"c","tool_call_id":"t/1"}`:                 "response is missing",
		`{"chat_id":"c","corr":"1","status":1}`:                "response is missing",
		`{"chat_id":{},"corr":"1","response":1}`:               "chat_id is an object",
		`{"chat_id":"c","corr":[],"response":1}`:               "corr is an array",
		`{"chat_id":"c","corr":true,"response":1}`:             "corr is a boolean",
		`{"chat_id":"c","corr":"a\nb","response":1}`:           "control character",
		`{"chat_id":"c","corr":"1","response":1,"response":2}`: "duplicate key",
		`{"chat_id":"c","corr":"1","response":1,"context":[]}`: "context is an array",
		`{"chat_id":"c","corr":"1","response":1,"user_id":{}}`: "user_id is an object",
		`{"type":"tool_call_response","data":{"chat_id":"c","corr":"1","text":""},"timestamp":true}`:        "timestamp is a boolean",
		`{"type":"tool_call_response","data":{"kind":"cancel"}}`:                                            "send one kind",
		fmt.Sprintf(`{"chat_id":"c","corr":%q,"response":1}`, strings.Repeat("x", events.MaxCallIDBytes+1)): "at most 1419",
		fmt.Sprintf(`{"chat_id":%q,"corr":"1","response":1}`, strings.Repeat("x", events.MaxIDBytes+1)):     "at most 1024",
		`{"chat_id":"c","corr":"1","response":` + nest(events.MaxDataDepth+1) + `}`:                         "nested more than 56",
		`{"chat_id":"c","corr":"1","response":` + nest(events.MaxDepth) + `}`:                               "nested more than 64",
		`{"chat_id":"c","corr":"1","response":[0` + strings.Repeat(",0", 99_950) + `]}`:                     "more than 99900 values",
		`{"chat_id":"c","corr":"1","response":1e999}`:                                                       "exponent over 308",
	} {
		_, err := events.DecodeAnswer([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, "%.80s", body)
		require.ErrorContains(t, err, want, "%.80s", body)
	}
	_, err := events.DecodeAnswer([]byte(`{"chat_id":"c","corr":"1","response":` + nest(events.MaxDataDepth) + `}`))
	require.NoError(t, err)
}

func TestAnswerOverItsLimitIsTooLargeHoweverItIsOpened(t *testing.T) {
	t.Parallel()
	answer := func(size int) []byte {
		const frame = `{"chat_id":"c","corr":"1","text":""}`
		return []byte(frame[:len(frame)-2] + strings.Repeat("x", size-len(frame)) + frame[len(frame)-2:])
	}
	_, err := events.DecodeAnswer(answer(events.MaxAnswerBytes))
	require.NoError(t, err)
	_, err = events.DecodeAnswer(answer(events.MaxAnswerBytes + 1))
	require.ErrorIs(t, err, events.ErrTooLarge)
	m, err := events.Parse(answer(events.MaxAnswerBytes + 1))
	require.NoError(t, err)
	_, err = m.Answer()
	require.ErrorIs(t, err, events.ErrTooLarge)
	require.NotContains(t, err.Error(), "xxx")
}

func TestMissingFieldOfAnAnswerIsNamed(t *testing.T) {
	t.Parallel()
	_, err := events.DecodeAnswer([]byte(`{"chat_id":"c","response":1}`))
	var missing *events.MissingFieldError
	require.ErrorAs(t, err, &missing)
	require.Equal(t, "tool_call_id", missing.Field)
}

func TestOnlyKindsOfAnswersAreAnswers(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tool_call_response", "ui_tool_response", "ui_tool_dismiss", "ui_tool_complete", "user_input_submit", "user.input.submit"} {
		require.True(t, events.AnswerKind(kind), kind)
	}
	for _, kind := range []string{"", "cancel", "expire", "tool_response", "chat.tool_call_response"} {
		require.False(t, events.AnswerKind(kind), kind)
	}
}

// FuzzDecodeAnswer holds that whatever decodes as an answer keeps the limits of the wire and is
// the same after another trip over it.
func FuzzDecodeAnswer(f *testing.F) {
	for _, s := range append([]string{
		`{"type":"ui_tool_response","eventId":"t/1","chat_id":"c","response":{"status":"ok"}}`,
		`{"type":"user.input.submit","chat_id":"c","text":"yes","request_id":"t/1"}`,
		`{"kind":"ui_tool_dismiss","event_id":"t/1","chat_id":"c"}`,
		`{"type":"chat.tool_call_response","data":{"tool_call_id":"t@01234567/%2F","run_id":"r","response":null,"context":{"chat_id":1}},"timestamp":null}`,
	}, fuzzSeeds...) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if e, err := events.DecodeExpire(body); err == nil {
			again, err := events.EncodeExpire(e, noon)
			require.NoError(t, err)
			turned, err := events.DecodeExpire(again)
			require.NoError(t, err)
			e.ExpiresAt = turned.ExpiresAt // the wire has milliseconds
			require.Equal(t, e, turned)
		}
		_, _ = events.DecodeAnswerResult(body)
		r, err := events.DecodeAnswer(body)
		if err != nil {
			require.True(t, events.CodeOf(err) == events.CodeBadArgs || events.CodeOf(err) == events.CodeTooLarge, "%v", err)
			return
		}
		for _, id := range []string{r.App, r.Chat, r.ToolCallID} {
			require.NotEmpty(t, id)
		}
		for _, id := range []string{r.App, r.Chat, r.Run, r.Turn, r.Workflow, r.UserID} {
			require.LessOrEqual(t, len(id), events.MaxIDBytes)
			require.NotContains(t, id, "\x00")
		}
		require.LessOrEqual(t, len(r.ToolCallID), events.MaxCallIDBytes)
		if call, ask, ok := events.ParseQuestionID(r.ToolCallID); ok {
			require.Equal(t, r.ToolCallID, events.QuestionID(call, ask))
		}
		again, err := events.EncodeAnswer(r, noon)
		if err != nil { // the names of the older generation are shorter
			require.ErrorIs(t, err, events.ErrTooLarge)
			return
		}
		turned, err := events.DecodeAnswer(again)
		require.NoError(t, err)
		require.Equal(t, r, turned)
	})
}
