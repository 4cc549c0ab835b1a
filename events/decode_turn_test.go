package events_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

const newBody = `{"kind":"structured_output_ready","agent":"old name","agent_name":"A","model_name":"Out",
 "structured_data":{"name":"Al","n":1.0},"auto_tool_mode":true,"turn_idempotency_key":"turn-1","run_id":"r","correction_of":"turn-0",
 "_pattern_context_ref":"<object>","CHAT_ID":"evil","Context":{"chat_id":"evil"},
 "context":{"chat_id":"c","app_id":"app","enterprise_id":"ent","workflow_name":"WF","user_id":"u","turn_sequence":12,"agent_name":"x",
  "CHAT_ID":"evil","context_variables":{"x":1,"user_id":"other"}}}`

func wantTurn() *events.StructuredOutputReady {
	return &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: "app", Chat: "c", Run: "r", Turn: "turn-1"},
		Workflow: "WF", Agent: "A", Model: "Out", AutoToolMode: true, UserID: "u", TurnSequence: 12, CorrectionOf: "turn-0",
		Data:             map[string]any{"name": "Al", "n": number("1.0")},
		ContextVariables: map[string]any{"x": number("1"), "user_id": "other"},
	}
}

func TestTurnDecodesBareAndInItsEnvelope(t *testing.T) {
	t.Parallel()
	got, err := events.DecodeTurn([]byte(newBody))
	require.NoError(t, err)
	require.Equal(t, wantTurn(), got)

	got, err = events.DecodeTurn([]byte(strings.Replace(newBody, `"kind":"structured_output_ready",`, "", 1)))
	require.NoError(t, err)
	require.Equal(t, wantTurn(), got)

	for stamp, instant := range map[string]time.Time{
		`"2026-01-02T03:04:05.678+01:00"`:    time.Date(2026, 1, 2, 2, 4, 5, 678_000_000, time.UTC),
		`"2026-01-02T03:04:05.000006+00:00"`: time.Date(2026, 1, 2, 3, 4, 5, 6_000, time.UTC),
		`"2026-01-02T03:04:05.5"`:            time.Date(2026, 1, 2, 3, 4, 5, 500_000_000, time.UTC),
		`null`:                               {},
	} {
		want := wantTurn()
		want.Timestamp = instant
		for _, kind := range []string{"chat.structured_output_ready", "structured_output_ready"} {
			body := fmt.Sprintf(`{"type":%q,"data":%s,"timestamp":%s,"agent":"Agent","chat_id":"evil"}`, kind, newBody, stamp)
			got, err = events.DecodeTurn([]byte(body))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

// decodeWith decodes a turn that has the given members next to data, model and mode.
func decodeWith(members string) (*events.StructuredOutputReady, error) {
	return events.DecodeTurn([]byte(`{"structured_data":{},"auto_tool_mode":true,` + members + `}`))
}

func TestTurnReadsBothGenerationsOfNamesInOrder(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]events.StructuredOutputReady{
		`"chat_id":"c","turn_idempotency_key":"t"`:                                                     {},
		`"chat_id":"c","turn_idempotency_key":"t","context":null`:                                      {},
		`"chat_id":"x","turn_idempotency_key":"t","context":{"chat_id":"c"}`:                           {},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"chat_id":""}`:                            {},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"turn_idempotency_key":"x"}`:              {},
		`"chat_id":"c","turn_idempotency_key":null,"context":{"turn_idempotency_key":"t"}`:             {},
		`"chat_id":"c","turn_idempotency_key":"t","agent":"A"`:                                         {Agent: "A"},
		`"chat_id":"c","turn_idempotency_key":"t","agent":"B","agent_name":"A"`:                        {Agent: "A"},
		`"chat_id":"c","turn_idempotency_key":"t","model_name":null`:                                   {},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"enterprise_id":"e"}`:                     {TurnID: events.TurnID{App: "e"}, Enterprise: true},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"app_id":"a","enterprise_id":"e"}`:        {TurnID: events.TurnID{App: "a"}},
		`"chat_id":"c","turn_idempotency_key":"t","app_id":"a","enterprise_id":"x"`:                    {TurnID: events.TurnID{App: "a"}},
		`"chat_id":"c","turn_idempotency_key":"t","app_id":"x","context":{"enterprise_id":"e"}`:        {TurnID: events.TurnID{App: "e"}},
		`"chat_id":"c","turn_idempotency_key":"t","enterprise_id":"e"`:                                 {TurnID: events.TurnID{App: "e"}, Enterprise: true},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"run_id":"r"}`:                            {TurnID: events.TurnID{Run: "r"}},
		`"chat_id":"c","turn_idempotency_key":"t","run_id":7,"context":{"run_id":"x"}`:                 {TurnID: events.TurnID{Run: "7"}},
		`"chat_id":"c","turn_idempotency_key":"t","workflow_name":"W"`:                                 {Workflow: "W"},
		`"chat_id":"c","turn_idempotency_key":"t","workflow_name":"x","context":{"workflow_name":"W"}`: {Workflow: "W"},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"context_variables":{"user_id":5}}`: {
			UserID: "5", ContextVariables: map[string]any{"user_id": number("5")},
		},
		`"chat_id":"c","turn_idempotency_key":"t","context":{"context_variables":{"user_id":{}}}`: {
			ContextVariables: map[string]any{"user_id": map[string]any{}},
		},
	} {
		want.Chat, want.Turn, want.AutoToolMode, want.Data = "c", "t", true, map[string]any{}
		if want.App == "" {
			want.App = events.DefaultApp
		}
		got, err := decodeWith(members)
		require.NoError(t, err, members)
		require.Equal(t, &want, got, members)
	}
	got, err := decodeWith(`"chat_id":12,"turn_idempotency_key":1.0,"app_id":-0`)
	require.NoError(t, err)
	require.Equal(t, events.TurnID{App: "-0", Chat: "12", Turn: "1.0"}, got.TurnID)
}

func TestTurnErrorNamesTheFieldAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	const ids = `"chat_id":"c","turn_idempotency_key":"t",`
	for members, want := range map[string]string{
		`"chat_id":true`:                                               "chat_id is a boolean: expected a string",
		ids + `"context":{"chat_id":["secret"]}`:                       "context.chat_id is an array: expected a string",
		ids + `"context":{"app_id":{},"enterprise_id":"e"}`:            "context.app_id is an object",
		ids + `"context":[]`:                                           "context is an array: expected an object",
		ids + `"context":"secret"`:                                     "context is a string: expected an object",
		ids + `"context":{"context_variables":7}`:                      "context.context_variables is a number: expected an object",
		ids + `"context":{"turn_sequence":"one"}`:                      "context.turn_sequence is a string: expected a whole number",
		ids + `"context":{"turn_sequence":1.5}`:                        "context.turn_sequence is a number: expected a whole number",
		ids + `"context":{"turn_sequence":1e3}`:                        "context.turn_sequence is a number",
		ids + `"context":{"turn_sequence":9223372036854775808}`:        "context.turn_sequence is a number",
		ids + `"agent_name":1`:                                         "agent_name is a number: expected a string",
		ids + `"model_name":{}`:                                        "model_name is an object: expected a string",
		ids + `"kind":"cancel"`:                                        `kind is "cancel": expected one of structured_output_ready, plan_ready, retry, which start turns`,
		ids + `"kind":1`:                                               "kind is a number",
		ids + `"type":"chat.structured_output_ready"`:                  "data is null or absent: expected an object next to type",
		ids + `"agent":"a\u0000b"`:                                     "agent has a control character at byte 1",
		ids + `"model_name":"a\u0085"`:                                 "model_name has a control character",
		ids + `"workflow_name":"a\nb"`:                                 "workflow_name has a control character",
		ids + `"run_id":"\u007f"`:                                      "run_id has a control character",
		ids + `"context":{"app_id":"a\tb"}`:                            "context.app_id has a control character",
		`"turn_idempotency_key":"t","chat_id":"\u0000"`:                "chat_id has a control character",
		`"chat_id":"c","turn_idempotency_key":"a\r\nb"`:                "turn_idempotency_key has a control character",
		`"chat_id":"` + strings.Repeat("c", 1025) + `"`:                "chat_id has 1025 bytes: at most 1024",
		ids + `"a":1,"a":2`:                                            "duplicate key",
		ids + `"context":{"context_variables":{"x":` + nest(56) + `}}`: "context.context_variables is nested more than 56 deep",
	} {
		got, err := decodeWith(members)
		require.Nil(t, got, members)
		require.ErrorIs(t, err, events.ErrBadArgs, members)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	for body, want := range map[string]string{
		`[]`:                         "the body is an array: expected an object",
		`7`:                          "the body is a number",
		`{"type":"chat.x","data":7}`: "data is a number",
		`{"type":"chat.cancel","data":{"auto_tool_mode":true}}`:                         `kind is "cancel"`,
		`{"type":"chat.a","data":{"kind":"b"}}`:                                         `type is "a" and data.kind "b"`,
		`{"type":7,"data":{}}`:                                                          "type is a number",
		`{"type":"x","data":{"chat_id":"c",}}`:                                          "invalid JSON at byte 34",
		`{"type":"structured_output_ready","data":` + newBody + `,"timestamp":1e30}`:    "timestamp is a number: expected a time such as",
		`{"type":"structured_output_ready","data":` + newBody + `,"timestamp":"today"}`: "timestamp is a string: expected a time such as",
	} {
		_, err := events.DecodeTurn([]byte(body))
		require.ErrorIs(t, err, events.ErrBadArgs, body)
		require.ErrorContains(t, err, want)
	}
}

func TestTurnWithoutChatOrKeyNamesTheMissingField(t *testing.T) {
	t.Parallel()
	for members, field := range map[string]string{
		`"turn_idempotency_key":"t"`:                          "chat_id",
		`"turn_idempotency_key":"t","CHAT_ID":"c"`:            "chat_id",
		`"turn_idempotency_key":"t","context":{"chat_id":""}`: "chat_id",
		`"chat_id":"c"`: "turn_idempotency_key",
		`"chat_id":"c","turn_idempotency_key":""`:              "turn_idempotency_key",
		`"chat_id":"c","turn_idempotency_key":null,"turn":"t"`: "turn_idempotency_key",
	} {
		_, err := decodeWith(members)
		var missing *events.MissingFieldError
		require.ErrorAs(t, err, &missing, members)
		require.Equal(t, field, missing.Field, members)
		require.ErrorIs(t, err, events.ErrBadArgs)
	}
}

func TestOnlyJSONTrueIsATurnAndTheRestDecodesWhateverItHolds(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{`false`, `null`, `1`, `"true"`, `{}`} {
		for _, rest := range []string{
			``, `,"context":{"chat_id":"c"}`, `,"context":[]`, `,"chat_id":{},"agent":7`,
			`,"structured_data":` + nest(60), `,"model_name":"a\u0000"`,
		} {
			got, err := events.DecodeTurn([]byte(`{"kind":"structured_output_ready","auto_tool_mode":` + mode + rest + `}`))
			require.NoError(t, err, mode+rest)
			require.False(t, got.AutoToolMode)
		}
	}
	got, err := events.DecodeTurn([]byte(`{"type":"chat.structured_output_ready","data":{"agent":"A"},"timestamp":"today"}`))
	require.NoError(t, err)
	require.False(t, got.AutoToolMode)
	require.Equal(t, "A", got.Agent)
}

func TestDataAsDeepAsATurnMayCarryFitsInItsEvent(t *testing.T) {
	t.Parallel()
	body := `{"chat_id":"c","turn_idempotency_key":"t","auto_tool_mode":true,"structured_data":%s}`
	turn, err := events.DecodeTurn(fmt.Appendf(nil, body, nest(events.MaxDataDepth)))
	require.NoError(t, err)
	call := sampleCall()
	call.Payload.ToolArgs = map[string]any{"data": turn.Data}
	mustDecode(t, encode(t, events.KindToolCall, call))

	_, err = events.DecodeTurn(fmt.Appendf(nil, body, nest(events.MaxDataDepth+1)))
	require.ErrorContains(t, err, "structured_data is nested more than 56 deep")
}

func TestCancelNamesItsTurnInAnyOfFourWays(t *testing.T) {
	t.Parallel()
	qualified := events.QualifiedCallID("t", "token")
	want := events.TurnID{App: "a", Chat: "c", Turn: "t"}
	withRun := want
	withRun.Run = "r"
	for members, id := range map[string]events.TurnID{
		`"turn":"t"`:                                           want,
		`"turn":"t","turn_idempotency_key":"x"`:                want,
		`"turn_idempotency_key":"t"`:                           want,
		`"context":{"turn_idempotency_key":"t"}`:               want,
		`"tool_call_id":"t"`:                                   want,
		`"tool_call_id":"t","run_id":"r"`:                      withRun,
		`"run_id":"r","tool_call_id":"` + qualified + `"`:      withRun,
		`"run_id":"r","tool_call_id":"` + qualified + `/ask1"`: withRun,
		`"run_id":"r","tool_call_id":"` + qualified + `#2"`:    withRun,
		`"turn":"t","context":{"chat_id":"c","app_id":"a"}`:    want,
		`"kind":"cancel","turn":"t","context":{"user_id":"u"}`: want,
	} {
		got, err := events.DecodeCancel([]byte(`{"app_id":"a","chat_id":"c","reason":"no more","workflow_name":"W",` + members + `}`))
		require.NoError(t, err, members)
		require.Equal(t, id, got.TurnID, members)
		require.Equal(t, "no more", got.Reason)
		require.Equal(t, "W", got.Workflow)
	}
	for members, want := range map[string]string{
		`"turn":"t"`:                          "chat_id is missing",
		`"chat_id":"c"`:                       "turn is missing: send it as turn, turn_idempotency_key or tool_call_id",
		`"chat_id":"c","turn":"t","reason":1`: "reason is a number: expected a string",
		`"chat_id":"c","turn":"a\u0000"`:      "turn has a control character",
		`"kind":"resume","chat_id":"c"`:       `kind is "resume": expected "cancel"`,
	} {
		_, err := events.DecodeCancel([]byte(`{` + members + `}`))
		require.ErrorIs(t, err, events.ErrBadArgs)
		require.ErrorContains(t, err, want)
	}
}

func TestEncodedCancelDecodesToItself(t *testing.T) {
	t.Parallel()
	want := &events.Cancel{TurnID: events.TurnID{App: "a", Chat: "c", Run: "r", Turn: "t"}, Workflow: "W", Reason: "why", UserID: "u"}
	body, err := events.EncodeCancel(want, noon)
	require.NoError(t, err)
	got, err := events.DecodeCancel(body)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestKindIsReadInEitherForm(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"kind":"cancel"}`:                               "cancel",
		`{"type":"chat.cancel","data":{}}`:                "cancel",
		`{"type":"chat.cancel","data":{"kind":"cancel"}}`: "cancel",
		`{"type":"resume","data":{"kind":null}}`:          "resume",
		`{"kind":"resume","type":"note","data":1}`:        "resume",
		`{"kind":"resume","data":{"kind":"other"}}`:       "resume",
		`{}`: "",
	} {
		m, err := events.Parse([]byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, m.Kind, body)
	}
	_, err := events.Parse([]byte(`{"kind":"x"`))
	var syntax *events.SyntaxError
	require.ErrorAs(t, err, &syntax)
}
