package handoff

import (
	"slices"

	"github.com/oneturn/oneturn/handoff/expression"
)

// Trial is a rule as it was tried for a decision, or was not.
type Trial struct {
	Rule      *Rule
	Source    string  // the agent whose rule it is, or User
	Outcome   Outcome //
	Condition string  // the one that does not hold or cannot be decided, "" if there is none
	Code      string  // of an undecided rule
	Message   string  // of an undecided rule
}

// Outcome is what a rule comes to when it is tried.
type Outcome string

// Outcomes.
const (
	OutcomeApplies    Outcome = "applies"
	OutcomeOtherText  Outcome = "other_text" // the text of the message is none of its triggers
	OutcomeFalse      Outcome = "false"      // a condition does not hold
	OutcomeDenied     Outcome = "denied"     // the decider has answered no
	OutcomeUndecided  Outcome = "undecided"  // it cannot be decided
	OutcomeUnanswered Outcome = "unanswered" // the decider has not answered yet
	OutcomeOverridden Outcome = "overridden" // a later rule of the agent has no condition either
	OutcomeNotTried   Outcome = "not_tried"  // another rule applies first, or cannot be decided
)

// Explain returns the rules of the agent that spoke, and of those that were chosen after it, in the order in which [Rules.Decide]
// tries them; then the rules of the agent that spoke which are not tried. Its pre rules decide before it speaks and are left out.
func (r *Rules) Explain(in Input) []Trial {
	if r == nil {
		return nil
	}
	w := walk{rules: r, in: in, traced: true}
	w.decide()
	speaker := r.speaker(in.Agent)
	for _, rule := range r.bySource[speaker] {
		tried := slices.ContainsFunc(w.trials, func(t Trial) bool { return t.Rule == rule && t.Source == speaker })
		if !tried && !rule.Pre {
			w.trials = append(w.trials, Trial{Rule: rule, Source: speaker, Outcome: OutcomeNotTried})
		}
	}
	return w.trials
}

// note remembers how a rule was tried.
func (w *walk) note(r *Rule, source string, outcome Outcome, e *expression.Expression) {
	if !w.traced {
		return
	}
	t := Trial{Rule: r, Source: source, Outcome: outcome}
	if e != nil {
		t.Condition = e.String()
	}
	if u := w.undecided; u != nil && outcome == OutcomeUndecided {
		t.Code, t.Message = u.Code, u.Message
	}
	w.trials = append(w.trials, t)
}
