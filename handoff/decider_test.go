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

func TestCallOfAQuestionIsAnotherOneForAnotherQuestion(t *testing.T) {
	t.Parallel()
	q := handoff.Question{Rule: 12, Condition: "the user agrees", From: "A", To: "B"}
	require.Regexp(t, "^d12-[0-9a-f]{8}$", q.Call())
	rule, ok := handoff.RuleOfCall(q.Call())
	require.True(t, ok)
	require.Equal(t, 12, rule)
	for _, other := range []handoff.Question{
		{Rule: 1, Condition: "the user agrees", From: "A", To: "B"},
		{Rule: 12, Condition: "the user gives up", From: "A", To: "B"},
		{Rule: 12, Condition: "the user agrees", From: "A", To: "terminate"},
	} {
		require.NotEqual(t, q.Call(), other.Call())
	}
	for _, token := range []string{"", "0", "c1", "d", "d12", "d12-", "d-12345678", "dx-12345678", "d1-1234567", "d1-1234567g", "plan"} {
		_, ok := handoff.RuleOfCall(token)
		require.False(t, ok, token)
	}
}

func TestAnswerToWhatOtherRulesHaveAskedDoesNotCount(t *testing.T) {
	t.Parallel()
	compiled := func(condition string) *handoff.Rules {
		rules, _ := handoff.Compile(handoff.Options{Decider: "judge"}, handoff.Manifest{Strict: true, JSON: []byte(`[{"from": "A", "to": "B", "condition": "` + condition + `"}]`)})
		return rules
	}
	in := handoff.Input{Agent: "A", Answers: map[string]handoff.Answer{}}
	_, question := compiled("the user agrees").Decide(in)
	in.Answers[question.Call()] = handoff.AnswerYes
	d, _ := compiled("the user agrees").Decide(in)
	require.Equal(t, "B", d.To)
	_, question = compiled("the user gives up").Decide(in)
	require.Equal(t, "the user gives up", question.Condition)
}

func TestDeciderIsAskedAboutTheMessage(t *testing.T) {
	t.Parallel()
	q := handoff.Question{Rule: 1, Condition: "the user agrees", From: "A", To: "B"}
	require.Equal(t, map[string]any{
		"condition": "the user agrees", "next": "B", "message": map[string]any{"agent": "A", "content": "ok"},
	}, q.Data(&handoff.Input{Agent: "A", Content: "ok", Variables: map[string]any{"secret": "x"}}))
	require.Equal(t, []any{"holds"}, handoff.DeciderSchema()["required"])
}
