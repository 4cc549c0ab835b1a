package planner_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestCorrectionShowsTheOutputAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := planner.Correction{Agent: "Architect", Model: "Plan", Schema: json.RawMessage(`{"type":"object"}`), Output: "<think>hm</think>{\"title\": 5}", Feedback: "title has to be a string"}
	r := c.Request()
	require.Equal(t, []tools.Message{
		{Role: "user", Content: `{"agent":"Architect","model":"Plan"}`}, {Role: "assistant", Content: `{"title": 5}`}, {Role: "user", Content: "title has to be a string"},
	}, r.Messages)
	require.True(t, r.Whole)
	require.JSONEq(t, `{"type":"object"}`, string(r.Schema))
	require.NotContains(t, r.System, "Architect")

	c = planner.Correction{Output: map[string]any{"a": true}, Schema: json.RawMessage(strings.Repeat(" ", 65<<10))}
	r = c.Request()
	require.Equal(t, `{"a":true}`, r.Messages[1].Content)
	require.Equal(t, "(empty)", r.Messages[2].Content, "endpoints refuse empty messages")
	require.Nil(t, r.Schema)
	c.Output = strings.Repeat("x", 1<<20)
	require.Less(t, len(c.Request().Messages[1].Content), 129<<10)
}

func TestResultOfACorrectionIsACompletionATextOrTheOutput(t *testing.T) {
	t.Parallel()
	for result, want := range map[string][]any{
		`"a text"`: {"a text", "", tools.Usage{}},
		`{"content":"a text","finish_reason":"length","usage":{"prompt_tokens":5,"completion_tokens":7}}`:  {"a text", "length", tools.Usage{Prompt: 5, Completion: 7}},
		`{"content":"a text","finish_reason":"stop","usage":{"prompt_tokens":-5,"completion_tokens":"7"}}`: {"a text", "stop", tools.Usage{}},
		`{"content":"of the model itself"}`: {map[string]any{"content": "of the model itself"}, "", tools.Usage{}},
		`{"title":"Shop"}`:                  {map[string]any{"title": "Shop"}, "", tools.Usage{}},
		`null`:                              {nil, "", tools.Usage{}},
	} {
		content, finish, usage, err := planner.ReadCorrection(json.RawMessage(result))
		require.NoError(t, err)
		require.Equal(t, want, []any{content, finish, usage}, result)
	}
	content, _, _, err := planner.ReadCorrection(json.RawMessage(`{`))
	require.Error(t, err)
	require.Nil(t, content)
}
