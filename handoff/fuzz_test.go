package handoff_test

import (
	"encoding/json"
	"testing"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
)

// Whatever the manifest, the message and the variables are: no panic, every finding has a code and a message, no rule is
// asked twice, and a decision is complete, does not change and survives JSON.
func FuzzDecide(f *testing.F) {
	for _, line := range []string{
		`{"handoff_rules": [{"source_agent": "A", "target_agent": "B", "condition": "${x} == True", "condition_scope": "pre"}, "x"]}`,
		`{"A": ["B", {"to": ["C"], "trigger": "NEXT"}], "B": {"targets": [{"to": "A", "condition": "why"}]}}`,
		`[{"from": ["A", "user"], "to": "stop", "transition_target": "AgentTarget", "conditions": ["context_variables.x is not null", "${y"]}]`,
	} {
		f.Add(line, "A", "next", `{"x": true}`)
	}
	f.Fuzz(func(t *testing.T, manifest, agent, content, context string) {
		value, err := events.Decode([]byte(context))
		variables, ok := value.(map[string]any)
		if err != nil || !ok {
			variables = nil
		}
		for _, decider := range []string{"", "judge"} {
			rules, found := handoff.Compile(handoff.Options{Agents: []string{"A", "B", "C"}, Decider: decider}, handoff.Manifest{JSON: []byte(manifest)})
			for _, finding := range found {
				if finding.Code == "" || finding.Message == "" || finding.Severity == "" {
					t.Fatalf("%+v", finding)
				}
			}
			for _, r := range rules.List() {
				if r.String() == "" || r.To == "" || len(r.From) == 0 {
					t.Fatalf("%+v", r)
				}
			}
			in := handoff.Input{Agent: agent, Content: content, Last: "B", Variables: variables, Answers: map[string]handoff.Answer{}}
			d, q := rules.Decide(in)
			for ; q != nil; d, q = rules.Decide(in) {
				if _, again := in.Answers[q.Call()]; again {
					t.Fatalf("rule %d is asked twice", q.Rule)
				}
				in.Answers[q.Call()] = []handoff.Answer{handoff.AnswerYes, handoff.AnswerNo, handoff.AnswerFailed}[(len(content)+q.Rule)%3]
			}
			checkDecision(t, d)
		}
	})
}

func checkDecision(t *testing.T, d handoff.Decision) {
	t.Helper()
	undecided := d.Reason == handoff.ReasonUndecided
	if (d.To == "") != (undecided || d.Reason == handoff.ReasonNoRule) || undecided != (d.Code != "") || undecided != (d.Message != "") {
		t.Fatalf("%+v", d)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again handoff.Decision
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || string(second) != string(text) {
		t.Fatalf("%s becomes %s: %v", text, second, err)
	}
}
