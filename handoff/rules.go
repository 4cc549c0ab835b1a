package handoff

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/handoff/expression"
)

// Targets and sources that are not agents. Their aliases are read as these.
const (
	User      = "user"      // the person of the chat
	Terminate = "terminate" // the chat ends; only as a target
)

// Rules are the handoff rules of one workflow. They are immutable and safe for concurrent use.
type Rules struct {
	rules    []*Rule
	bySource map[string][]*Rule // rules of a source, in the order of the manifest
	ignored  map[string][]Ignored
	names    names
	decider  string
}

// Rule is one rule that can be used.
type Rule struct {
	Number      int      // place in the manifests from 0; each target of an entry has its own
	From        []string // agents, or User
	To          string   // an agent, User or Terminate
	Kind        Reason   // ReasonCondition, ReasonLLM or ReasonAfterWork
	Pre         bool     // decides before From speaks, and only if a rule has chosen it
	Description string
	File        string // of the manifest, as Options.Locate returns it; "" if unknown
	Line        int    // from 1; 0 if unknown

	triggers   []string                 // in lower case; one of them has to be the text of the message
	texts      []string                 // the same as they are written
	conditions []*expression.Expression // all have to hold
	question   string                   // condition for a model
	pointer    string                   // in its manifest
	manifest   int
}

// Ignored is a rule that was left out when the manifest was read.
type Ignored struct {
	Rule int    `json:"rule"`
	Code string `json:"code"`
}

// List returns the rules that can be used, in the order of the manifest.
func (r *Rules) List() []*Rule {
	if r == nil {
		return nil
	}
	return slices.Clone(r.rules)
}

// Decider returns the tool that answers conditions for a model; "" if there is none.
func (r *Rules) Decider() string {
	if r == nil {
		return ""
	}
	return r.decider
}

// Empty reports whether the manifests have no rules at all, not even ignored ones.
func (r *Rules) Empty() bool { return r == nil || len(r.rules) == 0 && len(r.ignored) == 0 }

// Mentions reports whether an agent is the source or the target of a rule.
func (r *Rules) Mentions(agent string) bool {
	return r != nil && slices.ContainsFunc(r.rules, func(rule *Rule) bool { return rule.To == agent || slices.Contains(rule.From, agent) })
}

// Condition returns what has to hold for the rule, as people read it; "" if nothing has to.
func (r *Rule) Condition() string {
	var parts []string
	if len(r.texts) > 0 {
		quoted := make([]string, len(r.texts))
		for i, t := range r.texts {
			quoted[i] = shown(t)
		}
		parts = append(parts, "the text is "+strings.Join(quoted, " or "))
	}
	for _, c := range r.conditions {
		parts = append(parts, strings.TrimSpace(c.String()))
	}
	if r.question != "" {
		parts = append(parts, "the decider confirms "+shown(r.question))
	}
	return strings.Join(parts, " and ")
}

// String gives the rule as a sentence: when A has spoken and ${done} == True, B is next.
func (r *Rule) String() string {
	var b strings.Builder
	b.WriteString("when " + strings.Join(r.From, " or "))
	if r.Pre {
		b.WriteString(" is next")
	} else {
		b.WriteString(" has spoken")
	}
	if c := r.Condition(); c != "" {
		b.WriteString(" and " + c)
	}
	switch {
	case r.To == Terminate:
		b.WriteString(", the chat ends")
	case r.Pre:
		b.WriteString(", " + r.To + " is next instead")
	default:
		b.WriteString(", " + r.To + " is next")
	}
	return b.String()
}

// Variables returns the names of the variables in the conditions of the rule.
func (r *Rule) Variables() []string {
	var all []string
	for _, c := range r.conditions {
		all = append(all, c.Variables()...)
	}
	return all
}
