package planner_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/planner"
)

func TestReplyIsOneObjectInOneFenceAtMost(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"a":1}`, " \r\n{\"a\": 1}\n", "\ufeff{\"a\":1}", "```json\n{\"a\":1}\n```", "```\n{\"a\":1}\n```", "```JSON \r\n{\"a\":1}\r\n```\n", "```json\n{\"a\":1}```",
		"<think>perhaps {\"b\":2}</think>\n{\"a\":1}", "<think>x</think>\n```json\n{\"a\":1}\n```",
	} {
		got, err := planner.ReadText(text)
		require.NoError(t, err, text)
		require.Equal(t, map[string]any{"a": json.Number("1")}, got, text)
	}
	got, err := planner.ReadText("{\"a\":\"```json\\n{}\\n```\"}")
	require.NoError(t, err)
	require.Equal(t, "```json\n{}\n```", got["a"], "a fence inside of a value is data")
}

func TestReplyWithAnythingElseIsMalformedAndTheReasonNamesTheFix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "it is empty",
		" \n":                                   "it is empty",
		"```json\n```":                          "it is empty",
		"Sure!":                                 "begin with {",
		`Here: {"a":1}`:                         "begin with {",
		`{"a":1} Good luck!`:                    "more bytes after the document",
		`{"a":1}{"a":2}`:                        "more bytes after the document",
		`[{"a":1}]`:                             "not an array",
		`"{}"`:                                  "begin with {",
		`null`:                                  "begin with {",
		`{"steps": [`:                           "invalid JSON at byte",
		`{"a":1,}`:                              "invalid JSON at byte",
		`{"a":1,"a":2}`:                         "invalid JSON at byte",
		"{\"a\":\"\xff\"}":                      "invalid JSON at byte",
		"```json\n{\"a\":1}":                    "code fence",
		"```python\n{\"a\":1}\n```":             "code fence",
		"```{\"a\":1}```":                       "code fence",
		"```json\n{\"a\":1}\n```\nGood luck!":   "code fence",
		"Here:\n```json\n{\"a\":1}\n```":        "begin with {",
		"```json\n```json\n{\"a\":1}\n```\n```": "begin with {",
		"```json\n{}\n```\n```json\n{\"a\":1}\n```": "more bytes after the document",
		"<think>perhaps {\"a\":1}":                  "inside its reasoning",
		strings.Repeat("[", 1000):                   "not an array",
		strings.Repeat(`{"a":`, 1000):               "invalid JSON",
		strings.Repeat(" ", planner.MaxReply+1):     "the limit is",
	} {
		_, err := planner.ReadText(text)
		require.ErrorContains(t, err, want, "%.60q", text)
		require.Less(t, len(err.Error()), 600)
	}
}

func TestResultOfAnAgentIsAnObjectOrAText(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`{"a":1}`, ` {"a":1}`, `"{\"a\":1}"`, `"` + "```json\\n{\\\"a\\\":1}\\n```" + `"`} {
		got, err := planner.ReadReply(json.RawMessage(value))
		require.NoError(t, err, value)
		require.Equal(t, map[string]any{"a": json.Number("1")}, got)
	}
	for _, value := range []string{``, `null`, `7`, `[{"a":1}]`, `"\"{}\""`, `{"a":1}{}`, `{`} {
		_, err := planner.ReadReply(json.RawMessage(value))
		require.Error(t, err, value)
	}
}

func TestValuesOfAReplyAreNotPartOfTheReason(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`CANARY`, `{"a":"CANARY"} ` + `x`, `{"a":CANARY}`, "```json\n{\"a\":\"CANARY\"", "```CANARY\n{}\n```"} {
		_, err := planner.ReadText(text)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "CANARY")
	}
}

func TestHostileRepliesAreReadInLinearTime(t *testing.T) {
	t.Parallel()
	const n = planner.MaxReply - 100
	for _, unit := range []string{"<", "<think>", "</think>", "<think></think>", "```", "```json\n", "\n", " <", "\n<think", "{", `{"a":`, `{"a":{},`, "[", `"`, `\`, "<|channel|>", "<|channel|>final<|message|>", "\n</thought>"} {
		text := strings.Repeat(unit, n/len(unit))
		start := time.Now()
		for _, t := range []string{text, "<think>" + text, "```json\n" + text + "```", `{"a":"` + text} {
			_, _ = planner.ReadText(t)
		}
		require.Less(t, time.Since(start), 5*time.Second, "%q", unit)
	}
}

func TestObjectsAreReadInAllFormsOfReplies(t *testing.T) {
	t.Parallel()
	values := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s })))
	rapid.Check(t, func(t *rapid.T) {
		want := values.Draw(t, "object")
		data, err := events.AppendJSON(nil, want)
		if err != nil {
			t.Skip("not UTF-8")
		}
		quoted, err := json.Marshal("```json\n" + string(data) + "\n```")
		require.NoError(t, err)
		for _, reply := range []json.RawMessage{data, quoted} {
			got, err := planner.ReadReply(reply)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func FuzzReadText(f *testing.F) {
	for _, seed := range []string{goodPlan, goodSteps, "```json\n{}\n```", "<think>a</think>{}", "{}{}", "```", "\ufeff{}", "<|channel|>final<|message|>{}<|return|>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		object, err := planner.ReadText(text)
		if err != nil {
			require.Nil(t, object)
			require.LessOrEqual(t, len(err.Error()), 600)
			return
		}
		data, err := events.AppendJSON(nil, object)
		require.NoError(t, err)
		again, err := planner.ReadReply(data)
		require.NoError(t, err)
		require.Equal(t, object, again)
	})
}

func BenchmarkReadText(b *testing.B) {
	for b.Loop() {
		if _, err := planner.ReadText("```json\n" + goodPlan + "\n```"); err != nil {
			b.Fatal(err)
		}
	}
}
