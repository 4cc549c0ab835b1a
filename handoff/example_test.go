package handoff_test

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/handoff"
)

func Example() {
	rules, findings := handoff.Compile(handoff.Options{
		Agents: []string{"Interviewer", "Architect"}, Variables: []string{"complete"}, Decider: "judge",
	}, handoff.Manifest{JSON: []byte(`{"handoff_rules": [
	  {"source_agent": "Interviewer", "target_agent": "Architect", "handoff_type": "condition", "condition": "${complete} == True"},
	  {"source_agent": "Interviewer", "target_agent": "terminate", "handoff_type": "condition", "condition": "the user gives up"},
	  {"source_agent": "Interviewer", "target_agent": "user", "handoff_type": "after_work"},
	  {"source_agent": "Architect", "target_agent": "Tester", "handoff_type": "after_work"}]}`)})
	for _, r := range rules.List() {
		fmt.Println(r)
	}
	fmt.Println(findings[0].Message)

	in := handoff.Input{
		Agent: "Interviewer", Content: "NEXT", Variables: map[string]any{"complete": true}, Answers: make(map[string]handoff.Answer),
	}
	decision, question := rules.Decide(in)
	for ; question != nil; decision, question = rules.Decide(in) {
		fmt.Printf("ask %s: %s\n", rules.Decider(), question.Condition)
		in.Answers[question.Call()] = handoff.AnswerNo // stored first, so that a caller that resumes asks nothing twice
	}
	text, err := json.Marshal(decision)
	fmt.Println(string(text), err)
	// Output:
	// when Interviewer has spoken and ${complete} == True, Architect is next
	// when Interviewer has spoken and the decider confirms "the user gives up", the chat ends
	// when Interviewer has spoken, user is next
	// target "Tester" of a handoff rule is not an agent of the workflow
	// ask judge: the user gives up
	// {"to":"Architect","rule":0,"reason":"condition"} <nil>
}
