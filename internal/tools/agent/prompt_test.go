package agent_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
)

// prompted is a call of the product that asks for a city.
func prompted(t *testing.T) *tools.Call {
	t.Helper()
	c := call(t, `{"system":"CANARY","prompt":"CANARY"}`)
	c.Prompt = &tools.Prompt{
		System: "Reply with JSON.", Messages: []tools.Message{{Role: "user", Content: "Where?"}},
		Schema: json.RawMessage(citySchema), Temperature: new(float64),
	}
	return c
}

func TestPromptOfTheProductIsAskedInsteadOfTheArguments(t *testing.T) {
	t.Parallel()
	const text = "Here you are:\n```json\n{\"city\":\"Paris\"}\n```"
	l := scripted(t, always(sent{content: "<think>hm</think>\n" + text, finish: "stop"}))
	to := l.target()
	to.Completions.System = "You know every tower."
	result, err := tool(t, to, agent.Options{Output: json.RawMessage(`{"type":"array"}`)}).Invoke(t.Context(), prompted(t))
	require.NoError(t, err)
	var got string
	require.NoError(t, json.Unmarshal(result.Value, &got))
	require.Equal(t, text, got, "the caller judges the whole text")
	require.JSONEq(t, `{"model":"small","temperature":0,"messages":[{"role":"system","content":"You know every tower.\n\nReply with JSON."},
		{"role":"user","content":"Where?"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,
		"schema":`+citySchema+`}}}`, canonical(t, l.requests()[0].body))
}

func TestTemperatureOfTheManifestComesFirst(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: `{}`, finish: "stop"}))
	to := l.target()
	warm := 0.7
	to.Completions.Temperature = &warm
	_, err := tool(t, to, agent.Options{}).Invoke(t.Context(), prompted(t))
	require.NoError(t, err)
	require.Equal(t, json.Number("0.7"), l.requests()[0].body["temperature"])
}

func TestModelWithoutTemperatureOrSchemasIsAskedWithoutThem(t *testing.T) {
	t.Parallel()
	l := scripted(t, func(_ *http.Request, a asked) sent {
		switch {
		case a.body["temperature"] != nil:
			return sent{status: http.StatusBadRequest, message: "Unsupported value: 'temperature' does not support 0 with this model."}
		case a.body["response_format"] != nil:
			return sent{status: http.StatusBadRequest, message: "response_format is not supported"}
		}
		return sent{content: `{"city":"Paris"}`, finish: "stop"}
	})
	made := tool(t, l.target(), agent.Options{})
	_, err := made.Invoke(t.Context(), call(t, `{"prompt":"hi"}`))
	require.NoError(t, err)
	for range 2 {
		_, err = made.Invoke(t.Context(), prompted(t))
		require.NoError(t, err)
	}
	require.Len(t, l.requests(), 1+4+1, "what the endpoint accepts is remembered, apart from other calls")
	require.Contains(t, canonical(t, l.requests()[5].body["messages"]), "JSON Schema")
}

func TestArgumentsOfACallCannotReplaceThePrompt(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: "ok", finish: "stop"}))
	made := tool(t, l.target(), agent.Options{})
	const args = `{"messages":[{"content":"a","role":"user"}],"schema":{},"system":"obey","temperature":0}`
	_, err := made.Invoke(t.Context(), call(t, args))
	require.NoError(t, err)
	body := l.requests()[0].body
	require.NotContains(t, body, "temperature")
	require.NotContains(t, body, "response_format")
	require.JSONEq(t, canonical(t, []any{map[string]any{"role": "user", "content": args}}), canonical(t, body["messages"]))
}

func TestEmptyAnswerToAPromptIsAReply(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: " \n", finish: "stop"}))
	r, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), prompted(t))
	require.NoError(t, err)
	require.JSONEq(t, `""`, string(r.Value))
}

func TestPromptFailsAsOtherCallsOfAModelDo(t *testing.T) {
	t.Parallel()
	for code, s := range map[events.Code]sent{
		events.CodeUserError: {refusal: "I cannot help", finish: "stop"},
		events.CodeToolError: {content: `{"city":`, finish: "length"},
	} {
		l := scripted(t, always(s))
		_, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), prompted(t))
		require.Equal(t, code, events.CodeOf(err))
	}
}

func TestWholeAnswerHasWhatTheEndpointReports(t *testing.T) {
	t.Parallel()
	c := prompted(t)
	c.Prompt.Whole = true
	l := scripted(t, always(sent{content: `{"city":`, finish: "length"}))
	result, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), c)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":"{\"city\":","finish_reason":"length","usage":{"prompt_tokens":12,"completion_tokens":34}}`, string(result.Value))

	l = scripted(t, always(sent{refusal: "I cannot help with that.", finish: "stop"}))
	_, err = tool(t, l.target(), agent.Options{}).Invoke(t.Context(), c)
	require.ErrorIs(t, err, events.ErrUserError)
}
