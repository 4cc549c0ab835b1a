package agent_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const citySchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`

func always(s sent) func(*http.Request, asked) sent {
	return func(*http.Request, asked) sent { return s }
}

func TestModelGetsTheRequestOfTheManifest(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: `{"city":"Paris"}`, finish: "stop"}))
	to := l.target()
	cold := 0.0
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("CANARY\n"), 0o600))
	to.Completions.System, to.Completions.Temperature, to.Completions.MaxTokens = "Be brief.", &cold, 100
	to.Completions.Headers = map[string]target.Value{"Authorization": {File: file, Prefix: "Bearer "}}
	var log bytes.Buffer
	result, err := tool(t, to, agent.Options{
		Output: json.RawMessage(citySchema), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}).Invoke(t.Context(), call(t, `{"prompt":"Where is the tower?"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"city":"Paris"}`, string(result.Value))
	seen := l.requests()
	require.Len(t, seen, 1)
	require.JSONEq(t, `{"model":"small","temperature":0,"max_tokens":100,"messages":[{"role":"system","content":"Be brief."},
		{"role":"user","content":"Where is the tower?"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,
		"schema":`+citySchema+`}}}`, canonical(t, seen[0].body))
	require.Equal(t, "Bearer CANARY", seen[0].header.Get("Authorization"))
	require.Equal(t, "key-1", seen[0].header.Get("Idempotency-Key"))
	for _, name := range []string{"User", "Chat", "App", "Turn", "Call", "Tool", "Workflow", "Agent"} {
		require.Empty(t, seen[0].header.Get("Oneturn-"+name), "a model need not know whom it is for")
	}
	require.Contains(t, log.String(), "prompt_tokens=12 completion_tokens=34")
	for _, secret := range []string{"CANARY", "Paris", "tower", "brief"} {
		require.NotContains(t, log.String(), secret)
	}
}

func TestArgumentsBecomeAConversation(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: "ok", finish: "stop"}))
	made := tool(t, l.target(), agent.Options{})
	for i, c := range []struct{ args, messages string }{
		{`{"prompt":"hi"}`, `[{"role":"user","content":"hi"}]`},
		{
			`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`,
			`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
		},
		{`{"prompt":"hi","tone":"dry"}`, `[{"role":"user","content":"{\"prompt\":\"hi\",\"tone\":\"dry\"}"}]`},
		{`{"prompt":7}`, `[{"role":"user","content":"{\"prompt\":7}"}]`},
		{`{}`, `[{"role":"user","content":"{}"}]`},
	} {
		_, err := made.Invoke(t.Context(), call(t, c.args))
		require.NoError(t, err)
		require.JSONEq(t, c.messages, canonical(t, l.requests()[i].body["messages"]))
	}
}

func TestInvalidConversationIsRefusedBeforeTheModelIsAsked(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{}))
	made := tool(t, l.target(), agent.Options{})
	for args, want := range map[string]string{
		`{"messages":[]}`: "/messages", `{"messages":["CANARY"]}`: "/messages/0",
		`{"messages":[{"role":"system","content":"CANARY"}]}`: "/messages/0/role",
		`{"messages":[{"role":"user","content":["CANARY"]}]}`: "/messages/0/content",
	} {
		_, err := made.Invoke(t.Context(), call(t, args))
		require.ErrorIs(t, err, events.ErrBadArgs)
		require.ErrorContains(t, err, "bad_args:"+want+":")
		require.NotContains(t, err.Error(), "CANARY")
	}
	require.Empty(t, l.requests())
}

func TestAnswerWithoutSchemaIsText(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{content: `{"city":"Paris"}`, finish: "stop"}))
	result, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{}`))
	require.NoError(t, err)
	require.JSONEq(t, `"{\"city\":\"Paris\"}"`, string(result.Value))
	require.NotContains(t, l.requests()[0].body, "response_format")
}

func TestJSONIsFoundInTheAnswerOfTheModel(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`["a"]`: `["a"]`,
		"Here you are:\n```json\n{\"city\": \"Paris\"}\n```": `{"city":"Paris"}`,
	} {
		l := scripted(t, always(sent{content: content, finish: "stop"}))
		result, err := tool(t, l.target(), agent.Options{Output: json.RawMessage(`{}`)}).Invoke(t.Context(), call(t, `{}`))
		require.NoError(t, err)
		require.JSONEq(t, want, string(result.Value))
	}
}

// completion is the body of a completion with this content, as JSON.
func completion(content string) sent {
	return sent{raw: `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":` + content + `,"reasoning_content":"Perhaps {\"city\":\"CANARY\"}?"}}]}`}
}

func TestReasoningIsNeverTheAnswer(t *testing.T) {
	t.Parallel()
	const answer = `{"city":"Paris"}`
	for _, content := range []string{
		"<think>Perhaps {\"city\":\"CANARY\"}? No.</think>\n" + answer,
		"\n<THINK>\n{\"city\":\"CANARY\"}\n</Think>" + answer,
		"<thinking>a</thinking>\n<thinking>{\"city\":\"CANARY\"}</thinking>\nHere you are:\n```json\n" + answer + "\n```",
		"Let me see. {\"city\":\"CANARY\"}\n</think>\n\n" + answer, // the opening mark is part of the prompt
		"Sure. <reasoning>{\"city\":\"CANARY\"}</reasoning> " + answer,
		"[THINK]{\"city\":\"CANARY\"}[/THINK]" + answer,
		"<|channel|>analysis<|message|>{\"city\":\"CANARY\"}<|end|><|start|>assistant<|channel|>final<|message|>" + answer + "<|return|>",
	} {
		l := scripted(t, always(sent{content: content, finish: "stop"}))
		result, err := tool(t, l.target(), agent.Options{Output: json.RawMessage(citySchema)}).Invoke(t.Context(), call(t, `{}`))
		require.NoError(t, err, content)
		require.JSONEq(t, answer, string(result.Value), content)
	}
	for content, want := range map[string]string{
		"<think>CANARY</think>\n\nParis, of course.\n":       `"Paris, of course."`,
		"CANARY\n</think>\nParis":                            `"Paris"`,
		"Write `<think>` before and `</think>` after it.":    "\"Write `<think>` before and `</think>` after it.\"",
		"1 < 2 [and] so on\n":                                `"1 < 2 [and] so on\n"`,
		`{"html":"<think>a</think>"}`:                        `"{\"html\":\"<think>a</think>\"}"`,
		"Paris\n<think>CANARY</think>\n":                     `"Paris"`,
		"<|channel|>final<|message|>Paris<|return|>":         `"Paris"`,
		"Two lines.\n<thought>CANARY\n</thought>\nAnd four.": `"Two lines.\n\nAnd four."`,
	} {
		l := scripted(t, always(sent{content: content, finish: "stop"}))
		result, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{}`))
		require.NoError(t, err, content)
		require.JSONEq(t, want, string(result.Value), content)
	}
	for _, content := range []string{"<think>Perhaps {\"city\":\"CANARY\"}", "<|channel|>analysis<|message|>{\"city\":\"CANARY\"}"} {
		for _, output := range []json.RawMessage{nil, json.RawMessage(citySchema)} {
			l := scripted(t, always(sent{content: content, finish: "stop"}))
			_, err := tool(t, l.target(), agent.Options{Output: output}).Invoke(t.Context(), call(t, `{}`))
			require.ErrorContains(t, err, "ends inside its reasoning: raise max_tokens")
			require.NotContains(t, err.Error(), "CANARY")
		}
	}
}

func TestContentMayBeAListOfParts(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`[{"type":"text","text":"{\"city\":"},{"type":"text","text":"\"Paris\"}"}]`:                                            `{"city":"Paris"}`,
		`[{"type":"thinking","thinking":"CANARY"},{"type":"text","text":"{\"city\":\"Paris\"}"}]`:                              `{"city":"Paris"}`,
		`[{"type":"reasoning","text":"{\"city\":\"CANARY\"}"},{"type":"output_text","text":{"value":"{\"city\":\"Paris\"}"}}]`: `{"city":"Paris"}`,
		`["{\"city\":\"Paris\"}"]`:                            `{"city":"Paris"}`,
		`{"type":"text","text":"{\"city\":\"Paris\"}"}`:       `{"city":"Paris"}`,
		`[{"type":"image_url"},{"type":"text","text":"[1]"}]`: `[1]`,
	} {
		l := scripted(t, always(completion(content)))
		result, err := tool(t, l.target(), agent.Options{Output: json.RawMessage(`{}`)}).Invoke(t.Context(), call(t, `{}`))
		require.NoError(t, err, content)
		require.JSONEq(t, want, string(result.Value), content)
	}
	for content, want := range map[string]string{
		`[{"type":"image_url","image_url":{"url":"CANARY"}}]`:      `its content has no text, but parts of type "image_url"`,
		`[{"type":"refusal","refusal":"I cannot help with that"}]`: "the model refuses: I cannot help with that",
		`[]`:   "is empty",
		`null`: "is empty",
		`[7]`:  "neither a text nor an object",
	} {
		l := scripted(t, always(completion(content)))
		_, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{}`))
		require.ErrorContains(t, err, want, content)
		require.NotContains(t, err.Error(), "CANARY")
	}
}

func TestErrorInAnAnswerWithStatus200IsShownInItsOwnWords(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct {
		code  events.Code
		want  string
		again bool
	}{
		`{"error":{"message":"model is overloaded, try again","code":503}}`:                        {events.CodeToolError, "status 503 (Service Unavailable): model is overloaded, try again", false},
		`{"error":{"message":"slow down","code":"429"}}`:                                           {events.CodeToolError, "slow down", true},
		`{"error":{"message":"no credit","type":"insufficient_quota","code":null}}`:                {events.CodeToolError, "the endpoint reports an error: no credit", false},
		`{"error":"out of memory"}`:                                                                {events.CodeToolError, "the endpoint reports an error: out of memory", false},
		`{"error":{}, "choices":[]}`:                                                               {events.CodeToolError, "is not a chat completion", false},
		`{"choices":[{"error":{"message":"upstream broke","code":502},"message":{"content":""}}]}`: {events.CodeToolError, "upstream broke", false},
		`{"choices":[{"finish_reason":"error","message":{"content":"Par"}}]}`:                      {events.CodeToolError, "the model failed while it answered", false},
		`{"choices":"none","error":{"message":"too long","code":400}}`:                             {events.CodeBadArgs, "too long", false},
	} {
		l := scripted(t, always(sent{raw: body}))
		_, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{}`))
		require.Equal(t, c.code, events.CodeOf(err), body)
		require.ErrorContains(t, err, c.want, body)
		require.Equal(t, c.again, tools.IsRetryable(err), body)
	}
}

func TestAnswerThatCannotBeUsedNamesTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent sent
		code events.Code
		want string
	}{
		{sent{refusal: "I cannot help with that.", finish: "stop"}, events.CodeUserError, "the model refuses: I cannot help with that."},
		{sent{finish: "content_filter"}, events.CodeUserError, "filter"},
		{sent{content: `{"CANARY":`, finish: "length"}, events.CodeToolError, "cut off after 34 tokens: raise max_tokens"},
		{sent{content: " \n", finish: "stop"}, events.CodeToolError, "is empty"},
		{sent{content: "CANARY is in France", finish: "stop"}, events.CodeToolError, "is not the JSON"},
		{sent{content: `{"CANARY":1`, finish: "stop"}, events.CodeToolError, "is not the JSON"},
		{sent{raw: `{"choices":[]}`}, events.CodeToolError, "is not a chat completion"},
		{sent{raw: `<html>CANARY`}, events.CodeToolError, "is not a chat completion"},
		{sent{status: 401, message: "wrong key"}, events.CodeToolError, "credentials are not accepted"},
		{sent{status: 404, message: "no such model"}, events.CodeToolError, "no such model"},
		{sent{status: 500}, events.CodeToolError, "status 500"},
		{sent{status: 504}, events.CodeTimeout, "may or may not"},
	} {
		l := scripted(t, always(c.sent))
		_, err := tool(t, l.target(), agent.Options{Output: json.RawMessage(citySchema)}).Invoke(t.Context(), call(t, `{}`))
		require.Equal(t, c.code, events.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "CANARY")
		require.False(t, tools.IsRetryable(err))
	}
}

// refusing refuses requests that have what it does not know.
func refusing(unknown ...string) func(*http.Request, asked) sent {
	return func(_ *http.Request, a asked) sent {
		var format string
		if f, ok := a.body["response_format"].(map[string]any); ok {
			format, _ = f["type"].(string)
		}
		for _, word := range unknown {
			if _, has := a.body[word]; has || format == word {
				return sent{status: http.StatusBadRequest, message: "Unsupported: '" + word + "'. Perhaps you mean 'max_completion_tokens'."}
			}
		}
		return sent{content: `{"city":"Paris"}`, finish: "stop"}
	}
}

func TestWhatTheEndpointDoesNotKnowIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unknown  []string
		requests int // of the first call
		format   any
	}{
		{nil, 1, "json_schema"},
		{[]string{"max_tokens"}, 2, "json_schema"},
		{[]string{"json_schema", "max_tokens"}, 3, "json_object"},
		{[]string{"response_format", "max_tokens"}, 4, nil},
	} {
		l := scripted(t, refusing(c.unknown...))
		to := l.target()
		to.Completions.MaxTokens = 50
		made := tool(t, to, agent.Options{Output: json.RawMessage(citySchema)})
		for range 2 {
			result, err := made.Invoke(t.Context(), call(t, `{}`))
			require.NoError(t, err)
			require.JSONEq(t, `{"city":"Paris"}`, string(result.Value))
		}
		seen := l.requests()
		require.Len(t, seen, c.requests+1, c.unknown)
		last := seen[len(seen)-1]
		format, _ := last.body["response_format"].(map[string]any)
		require.Equal(t, c.format, format["type"])
		keys := map[string]bool{}
		for _, one := range seen[:c.requests] {
			keys[one.header.Get("Idempotency-Key")] = true
		}
		require.Len(t, keys, c.requests, "a key that comes again with another body is a conflict")
		if c.format != "json_schema" {
			require.Contains(t, canonical(t, last.body["messages"]), "JSON Schema")
		}
	}
}

func TestMistakeOfTheCallDoesNotChangeHowOthersAreAsked(t *testing.T) {
	t.Parallel()
	l := scripted(t, func(_ *http.Request, a asked) sent {
		if strings.Contains(canonical(t, a.body["messages"]), "too long") {
			return sent{status: http.StatusBadRequest, message: "the context is full"}
		}
		return sent{content: `{"city":"Paris"}`, finish: "stop"}
	})
	made := tool(t, l.target(), agent.Options{Output: json.RawMessage(citySchema)})
	long := call(t, `{"prompt":"too long"}`)
	_, err := made.Invoke(t.Context(), long)
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, "the context is full")
	_, err = made.Invoke(t.Context(), call(t, `{"prompt":"hi"}`))
	require.NoError(t, err)
	before := l.requests()
	format, _ := before[len(before)-1].body["response_format"].(map[string]any)
	require.Equal(t, "json_schema", format["type"])
	_, err = made.Invoke(t.Context(), long)
	require.Error(t, err)
	require.Len(t, l.requests(), len(before)+1, "what was taken once is not put in other words")
}

func TestSchemasThatModelsCanBeHeldToAreStrict(t *testing.T) {
	t.Parallel()
	closedObject := func(properties, required string) string {
		return `{"type":"object","properties":` + properties + `,"required":` + required + `,"additionalProperties":false}`
	}
	for _, c := range []struct {
		schema string
		strict bool
	}{
		{citySchema, true},
		{closedObject(`{"all":{"type":"array","items":`+citySchema+`}}`, `["all"]`), true},
		{closedObject(`{"required":{"enum":[{"properties":{}}]}}`, `["required"]`), true},
		{closedObject(`{"a":{"type":"string"}}`, `[]`), false},
		{closedObject(`{"a":{"type":["object","null"]}}`, `["a"]`), false},
		{closedObject(`{"a":{"anyOf":[{"type":"object"}]}}`, `["a"]`), false},
		{closedObject(`{"a":{"$ref":"#/$defs/b"}}`, `["a"]`), true},
		{`{"type":"object","properties":{}}`, false},
		{`{"type":"array","items":{"type":"string"}}`, false},
		{`{}`, false},
		{`true`, false},
	} {
		l := scripted(t, always(sent{content: `{}`, finish: "stop"}))
		_, err := tool(t, l.target(), agent.Options{Output: json.RawMessage(c.schema)}).Invoke(t.Context(), call(t, `{}`))
		require.NoError(t, err)
		require.Contains(t, canonical(t, l.requests()[0].body["response_format"]), map[bool]string{true: `"strict":true`, false: `"strict":false`}[c.strict], c.schema)
	}
}

func TestBusyEndpointIsRetryable(t *testing.T) {
	t.Parallel()
	l := scripted(t, always(sent{status: http.StatusTooManyRequests, message: "slow down"}))
	_, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{}`))
	require.True(t, tools.IsRetryable(err))
	require.ErrorContains(t, err, "slow down")
}

func TestAnswerCountsHoweverItIsCounted(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{`{"prompt_tokens":1.5}`, `"much"`, `null`, `{"completion_tokens":"5"}`} {
		l := scripted(t, func(*http.Request, asked) sent {
			return sent{raw: `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":` + usage + `}`}
		})
		result, err := tool(t, l.target(), agent.Options{}).Invoke(t.Context(), call(t, `{"prompt":"?"}`))
		require.NoError(t, err, usage)
		require.JSONEq(t, `"yes"`, string(result.Value))
	}
}
