package handoff

import (
	"encoding/json"
	"fmt"
)

// Reason is why a decision is what it is.
type Reason string

// Reasons.
const (
	ReasonCondition   Reason = "condition"    // a condition on context variables or on the text holds
	ReasonLLM         Reason = "llm"          // the decider confirmed a condition for a model
	ReasonAfterWork   Reason = "after_work"   // the last rule without a condition
	ReasonLastSpeaker Reason = "last_speaker" // the user spoke, and no rule applies
	ReasonNoRule      Reason = "no_rule"      // no rule applies: the orchestrator decides
	ReasonUndecided   Reason = "undecided"    // a rule that had to be tried cannot be decided
)

// Codes of undecided decisions, in addition to the codes of [expression.Expression.Eval].
const (
	CodeNoDecider     = "no_decider"     // a condition for a model, and no decider is named
	CodeDeciderFailed = "decider_failed" // the call of the decider failed
	CodeCycle         = "cycle"          // pre rules choose an agent a second time
)

// Decision is what follows a message. Its JSON form has null where To is "" and Rule is NoRule.
type Decision struct {
	To       string    // an agent, User or Terminate; "" if Reason is ReasonNoRule or ReasonUndecided
	Rule     int       // number of the rule that applied, or that cannot be decided; NoRule if there is none
	Reason   Reason    //
	Via      []Via     // agents that were chosen first, and their pre rules that chose the next
	Code     string    // of an undecided decision
	Message  string    // of an undecided decision: what is wrong and the fix, without values of variables
	Fallback *Decision // of an undecided decision: what the other rules give; nil if they give nothing
	Ignored  []Ignored // rules of the speaker that were left out because they have errors
}

// NoRule stands for the number of a rule where there is none.
const NoRule = -1

// Via is an agent that was chosen, and whose pre rule chose another before it spoke.
type Via struct {
	Agent string `json:"agent"`
	Rule  int    `json:"rule"` // its pre rule
}

// decisionJSON is the JSON form.
type decisionJSON struct {
	To       *string   `json:"to"`
	Rule     *int      `json:"rule"`
	Reason   Reason    `json:"reason"`
	Via      []Via     `json:"via,omitempty"`
	Code     string    `json:"code,omitempty"`
	Message  string    `json:"message,omitempty"`
	Fallback *Decision `json:"fallback,omitempty"`
	Ignored  []Ignored `json:"ignored,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (d Decision) MarshalJSON() ([]byte, error) {
	j := decisionJSON{Reason: d.Reason, Via: d.Via, Code: d.Code, Message: d.Message, Fallback: d.Fallback, Ignored: d.Ignored}
	if d.To != "" {
		j.To = &d.To
	}
	if d.Rule != NoRule {
		j.Rule = &d.Rule
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode the decision of a handoff: %w", err)
	}
	return text, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Decision) UnmarshalJSON(text []byte) error {
	var j decisionJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("decode the decision of a handoff: %w", err)
	}
	*d = Decision{Rule: NoRule, Reason: j.Reason, Via: j.Via, Code: j.Code, Message: j.Message, Fallback: j.Fallback, Ignored: j.Ignored}
	if j.To != nil {
		d.To = *j.To
	}
	if j.Rule != nil {
		d.Rule = *j.Rule
	}
	return nil
}
