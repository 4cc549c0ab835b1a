package handoff_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff"
)

func TestExplainListsRulesInTheOrderInWhichTheyAreTried(t *testing.T) {
	t.Parallel()
	rules, found := handoff.Compile(handoff.Options{Decider: "judge"}, handoff.Manifest{Strict: true, JSON: []byte(`[
		{"from": "A", "to": "B"},
		{"from": "A", "to": "C", "condition": "${n} > 5"},
		{"from": "A", "to": "D", "trigger": "stop"},
		{"from": "A", "to": "E", "condition": "is it late?"},
		{"from": "A", "to": "F"},
		{"from": "A", "to": "G", "condition": "${n} > 1", "scope": "pre"},
		{"from": "F", "to": "B", "condition": "${n} == 1", "scope": "pre"}
	]`)})
	require.NotEmpty(t, found, "rule 0 is overridden")
	outcomes := func(in handoff.Input) (list []string) {
		for _, trial := range rules.Explain(in) {
			list = append(list, trial.Source+trial.Rule.To+" "+string(trial.Outcome))
		}
		return list
	}
	in := handoff.Input{Agent: "A", Content: "hello", Variables: map[string]any{"n": true}} // true is the number 1
	require.Equal(t, []string{"AE unanswered", "AB not_tried", "AC not_tried", "AD not_tried", "AF not_tried"}, outcomes(in))
	_, question := rules.Decide(in)
	in.Answers = map[string]handoff.Answer{question.Call(): handoff.AnswerNo}
	require.Equal(t, []string{"AE denied", "AC false", "AD other_text", "AF applies", "AB overridden", "FB applies"}, outcomes(in))
	in.Variables["n"] = "text"
	require.Equal(t, []string{"AE denied", "AC undecided", "AB not_tried", "AD not_tried", "AF not_tried"}, outcomes(in))
	trial := rules.Explain(in)[1]
	require.Equal(t, []string{"${n} > 5", "type"}, []string{trial.Condition, trial.Code})
	require.NotEmpty(t, trial.Message)
	require.Equal(t, []string{"n"}, trial.Rule.Variables())
	var none *handoff.Rules
	require.Empty(t, none.Explain(in))
}
