package handoff

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/handoff/expression"
)

// Input is what a decision depends on.
type Input struct {
	Agent     string            // that spoke; User or an alias of it for a message of the user
	Content   string            // text of the message
	Last      string            // for a message of the user: the agent that spoke before; "" if there is none
	Variables map[string]any    // state after the triggers of the message and the tool of its turn: a value tree
	Answers   map[string]Answer // of the decider, by [Question.Call]
}

// Answer is the decider's answer to a [Question].
type Answer string

// Answers. Any other value counts as AnswerFailed.
const (
	AnswerYes    Answer = "yes"
	AnswerNo     Answer = "no"
	AnswerFailed Answer = "failed" // its call failed, or gave neither yes nor no
)

// Question is a condition that the decider has to answer before the decision.
type Question struct {
	Rule      int    `json:"rule"`
	Condition string `json:"condition"` // as the manifest has it
	From      string `json:"from"`      // the source of the rule that is tried
	To        string `json:"to"`
}

// Decide decides what follows a message. If it returns a question, the decision is not complete: call it again with the
// answer under [Question.Call]. It asks each rule once at most, and nothing more once a rule cannot be decided.
func (r *Rules) Decide(in Input) (Decision, *Question) {
	if r == nil {
		r = &Rules{}
	}
	w := walk{rules: r, in: in}
	d := w.decide()
	if w.question != nil {
		return Decision{}, w.question
	}
	if d.Reason == ReasonUndecided && d.Code != CodeCycle {
		others := walk{rules: r, in: in, lenient: true}
		if other := others.decide(); other.To != "" {
			d.Fallback = &other
		}
	}
	d.Ignored = slices.Clone(r.ignored[r.speaker(in.Agent)])
	return d, nil
}

// speaker returns the source that a name of a message stands for.
func (r *Rules) speaker(name string) string {
	if IsUser(name) {
		return User
	}
	if agent := r.names.agent(name); agent != "" {
		return agent
	}
	return name
}

// walk tries rules for one decision.
type walk struct {
	rules   *Rules
	in      Input
	lenient bool // a rule that cannot be decided does not apply
	traced  bool // it fills trials
	trials  []Trial

	question  *Question
	undecided *Decision
}

// stopped reports whether no further rule is tried.
func (w *walk) stopped() bool { return w.question != nil || w.undecided != nil }

func (w *walk) decide() Decision {
	speaker := w.rules.speaker(w.in.Agent)
	d := w.choose(speaker)
	if d.To == "" && !w.stopped() && speaker == User && w.in.Last != "" {
		if last := w.rules.speaker(w.in.Last); last != User {
			d = Decision{To: last, Rule: NoRule, Reason: ReasonLastSpeaker}
		}
	}
	for d.To != "" && !w.stopped() {
		next := w.first(d.To, func(r *Rule) bool { return r.Pre })
		if next == nil {
			break
		}
		d.Via = append(d.Via, Via{d.To, next.Number})
		if d.To = next.To; slices.ContainsFunc(d.Via, func(v Via) bool { return v.Agent == d.To }) {
			return Decision{
				Rule: d.Rule, Reason: ReasonUndecided, Code: CodeCycle, Via: d.Via,
				Message: "pre rules choose " + d.To + " a second time: correct the condition of one of them",
			}
		}
	}
	if w.undecided != nil {
		w.undecided.Via = d.Via
		return *w.undecided
	}
	return d
}

// choose applies the rules of the agent that spoke.
func (w *walk) choose(speaker string) Decision {
	for _, kind := range []Reason{ReasonLLM, ReasonCondition} {
		if r := w.first(speaker, func(r *Rule) bool { return !r.Pre && r.Kind == kind }); r != nil {
			return Decision{To: r.To, Rule: r.Number, Reason: kind}
		}
		if w.stopped() {
			return Decision{Rule: NoRule}
		}
	}
	d := Decision{Rule: NoRule, Reason: ReasonNoRule}
	for _, r := range slices.Backward(w.rules.bySource[speaker]) {
		switch {
		case r.Kind != ReasonAfterWork:
		case d.To != "":
			w.note(r, speaker, OutcomeOverridden, nil)
		default:
			d = Decision{To: r.To, Rule: r.Number, Reason: ReasonAfterWork}
			w.note(r, speaker, OutcomeApplies, nil)
		}
	}
	return d
}

// first returns the first of the source's rules of this kind that applies; nil if none does, or the walk has stopped.
func (w *walk) first(source string, kind func(r *Rule) bool) *Rule {
	for _, r := range w.rules.bySource[source] {
		if kind(r) && w.applies(r, source) {
			return r
		}
		if w.stopped() {
			return nil
		}
	}
	return nil
}

// applies reports whether the conditions of a rule hold.
func (w *walk) applies(r *Rule, source string) bool {
	outcome, condition := w.try(r, source)
	w.note(r, source, outcome, condition)
	return outcome == OutcomeApplies
}

// try returns what a rule comes to, and the condition that does not hold or cannot be decided.
func (w *walk) try(r *Rule, source string) (Outcome, *expression.Expression) {
	if len(r.triggers) > 0 && !slices.Contains(r.triggers, strings.ToLower(strings.TrimSpace(w.in.Content))) {
		return OutcomeOtherText, nil
	}
	for _, e := range r.conditions {
		holds, err := e.Eval(w.in.Variables)
		if err != nil {
			w.fail(r, source, codeOf(err), "condition "+shown(e.String())+": "+err.Error())
			return OutcomeUndecided, e
		}
		if !holds {
			return OutcomeFalse, e
		}
	}
	if r.question == "" {
		return OutcomeApplies, nil
	}
	return w.confirmed(r, source), nil
}

// confirmed returns what the decider's answer makes of a rule.
func (w *walk) confirmed(r *Rule, source string) Outcome {
	question := Question{Rule: r.Number, Condition: r.question, From: source, To: r.To}
	answer, answered := w.in.Answers[question.Call()]
	switch {
	case answer == AnswerYes:
		return OutcomeApplies
	case answer == AnswerNo:
		return OutcomeDenied
	case answered:
		w.fail(r, source, CodeDeciderFailed, "the decider "+shown(w.rules.decider)+" failed: see its tool response")
		return OutcomeUndecided
	case w.rules.decider == "":
		w.fail(r, source, CodeNoDecider, "condition "+shown(r.question)+" is for a model: name a tool with decider")
		return OutcomeUndecided
	case !w.lenient:
		w.question = &question
	}
	return OutcomeUnanswered
}

// fail ends the walk with an undecided decision, unless it is lenient.
func (w *walk) fail(r *Rule, source, code, why string) {
	if w.lenient {
		return
	}
	place := ""
	if r.File != "" {
		place = " (" + r.File + ":" + strconv.Itoa(r.Line) + ")"
	}
	w.undecided = &Decision{
		Rule: r.Number, Reason: ReasonUndecided, Code: code,
		Message: "handoff rule " + strconv.Itoa(r.Number) + " of " + source + place + ": " + why,
	}
}

func codeOf(err error) string {
	var known *expression.Error
	if errors.As(err, &known) {
		return string(known.Code)
	}
	return string(expression.CodeType)
}
