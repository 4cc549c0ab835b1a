package handoff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff"
)

func TestReplyOfADeciderIsYesNoOrFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply any
		want  handoff.Answer
	}{
		{true, handoff.AnswerYes},
		{map[string]any{"holds": true, "why": "x"}, handoff.AnswerYes},
		{` {"holds": false} `, handoff.AnswerNo},
		{"Yes.", handoff.AnswerYes},
		{"no", handoff.AnswerNo},
		{"true", handoff.AnswerYes},
		{map[string]any{"holds": "true"}, handoff.AnswerFailed},
		{map[string]any{}, handoff.AnswerFailed},
		{`"{\"holds\": true}"`, handoff.AnswerFailed},
		{"yes, but no", handoff.AnswerFailed},
		{"", handoff.AnswerFailed},
		{nil, handoff.AnswerFailed},
	} {
		require.Equal(t, c.want, handoff.ReadAnswer(c.reply), "%v", c.reply)
	}
}

func TestResultOfADeciderIsTheTextOfAModelOrTheReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		result any
		want   handoff.Answer
	}{
		{map[string]any{"content": `{"holds": true}`, "finish_reason": "stop"}, handoff.AnswerYes},
		{map[string]any{"content": "no"}, handoff.AnswerNo},
		{map[string]any{"content": "yes", "holds": false}, handoff.AnswerNo},
		{map[string]any{"holds": true}, handoff.AnswerYes},
		{"yes", handoff.AnswerYes},
		{map[string]any{"content": map[string]any{"holds": true}}, handoff.AnswerFailed},
		{map[string]any{"content": `{"content": "yes"}`}, handoff.AnswerFailed},
		{nil, handoff.AnswerFailed},
	} {
		require.Equal(t, c.want, handoff.ReadResult(c.result), "%v", c.result)
	}
}

func TestDeciderIsAskedAboutTheMessage(t *testing.T) {
	t.Parallel()
	q := handoff.Question{Rule: 1, Condition: "the user agrees", From: "A", To: "B"}
	require.Equal(t, map[string]any{
		"condition": "the user agrees", "next": "B", "message": map[string]any{"agent": "A", "content": "ok"},
	}, q.Data(&handoff.Input{Agent: "A", Content: "ok", Variables: map[string]any{"secret": "x"}}))
	require.Equal(t, []any{"holds"}, handoff.DeciderSchema()["required"])
}
