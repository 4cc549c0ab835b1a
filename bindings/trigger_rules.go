package bindings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// Triggers are decided in two parts, so that a text is read once and a variable is compared with its value of that
// moment: [Rules.Text] and [Rules.Answer] return the steps that a text or an answer leads to, whatever the variables
// are, and [Updates] which of these steps change a variable. Neither does I/O: the second may be repeated in a
// compare-and-set loop.

// Rules are the triggers of a workflow, compiled. They are immutable and safe for concurrent use; nil has no triggers.
type Rules struct {
	texts       []textRule
	answers     []answerRule
	splitHiding bool
}

// any reports whether the variables of a workflow have triggers.
func (r *Rules) any() bool { return r != nil && len(r.texts)+len(r.answers) > 0 }

// textRule is an agent_text trigger.
type textRule struct {
	agent  string // "" = any
	step   Step
	hides  bool
	equals []string         // lower case, without white space around
	parts  []string         // lower case
	search []*regexp.Regexp // ignore case
	exact  []string         // patterns of equals and contains as written, without white space around
}

// answerRule is a ui_response trigger.
type answerRule struct {
	tool, key string
	step      Step
}

// Step is what a trigger does to a variable if the variable has the value From, or whatever value it has if From is nil.
// A list of steps is in the order of the manifest, and may be stored as JSON.
type Step struct {
	Variable string `json:"variable"`
	From     any    `json:"from,omitempty"`
	Value    any    `json:"value"`
}

// Update is a change of a variable.
type Update struct {
	Variable string `json:"variable"`
	Value    any    `json:"value"`
}

// TextEffects is what the text of a message leads to.
type TextEffects struct {
	Hidden bool // the message is not shown to people
	Steps  []Step
}

// Answer is the answer to a question of a UI tool.
type Answer struct {
	Names    []string // of who asked: the component, the function, the name of the tool
	Response any      // value tree
	Secret   bool     // it sets nothing
}

// Rules returns the triggers of a workflow, nil if it has none.
func (s *Set) Rules(workflow string) *Rules {
	if w := s.find(workflow); w != nil {
		return w.rules
	}
	return nil
}

// newRules compiles the triggers of a workflow.
func newRules(variables []Variable, splitHiding bool) *Rules {
	r := &Rules{splitHiding: splitHiding}
	for i := range variables {
		for _, t := range variables[i].Triggers {
			step := Step{variables[i].Name, t.From, t.Value}
			if t.Type == TriggerUIResponse {
				r.answers = append(r.answers, answerRule{t.Tool, t.ResponseKey, step})
				continue
			}
			r.texts = append(r.texts, t.rule(step))
		}
	}
	if len(r.texts)+len(r.answers) == 0 {
		return nil
	}
	return r
}

// rule compiles an agent_text trigger.
func (t *Trigger) rule(step Step) textRule {
	rule := textRule{agent: t.Agent, step: step, hides: t.UIHidden}
	for _, pattern := range t.Patterns {
		trimmed := strings.TrimSpace(pattern)
		switch t.Match {
		case MatchEquals:
			rule.equals = append(rule.equals, strings.ToLower(trimmed))
		case MatchContains: // its white space counts: it may part words
			rule.parts = append(rule.parts, strings.ToLower(pattern))
		case MatchRegex:
			if re := compileTrigger(pattern); re != nil {
				rule.search = append(rule.search, re)
			}
			continue
		}
		rule.exact = append(rule.exact, trimmed)
	}
	return rule
}

// Text returns what a text of an agent leads to. The name of the agent is compared exactly. White space around the text
// and letter case do not count, as in MozaiksAI. A message is hidden if a trigger with ui_hidden matches, also if that
// trigger changes nothing; with compat.split_hiding, only if the text is exactly one of the patterns of its equals or
// contains.
func (r *Rules) Text(agent, content string) TextEffects {
	var e TextEffects
	if r == nil || len(r.texts) == 0 {
		return e
	}
	agent, content = events.Name(agent), strings.TrimSpace(content)
	lower := ""
	for i := range r.texts {
		rule := &r.texts[i]
		if rule.agent != "" && rule.agent != agent {
			continue
		}
		if lower == "" {
			lower = strings.ToLower(content)
		}
		matched := rule.matches(content, lower)
		if matched {
			e.Steps = append(e.Steps, rule.step)
		}
		if r.splitHiding {
			matched = slices.Contains(rule.exact, content)
		}
		e.Hidden = e.Hidden || rule.hides && matched
	}
	return e
}

// matches compares a text and its lower case.
func (r *textRule) matches(content, lower string) bool {
	return slices.Contains(r.equals, lower) ||
		slices.ContainsFunc(r.parts, func(part string) bool { return strings.Contains(lower, part) }) ||
		slices.ContainsFunc(r.search, func(re *regexp.Regexp) bool { return re.MatchString(content) })
}

// HaveAnswers reports whether a trigger waits for an answer.
func (r *Rules) HaveAnswers() bool { return r != nil && len(r.answers) > 0 }

// Answers reports whether a trigger waits for the answer to a question of a tool or component with one of the names.
func (r *Rules) Answers(names ...string) bool {
	return r != nil && slices.ContainsFunc(r.answers, func(rule answerRule) bool { return slices.Contains(names, rule.tool) })
}

// Answer returns what an answer leads to: nothing if it is secret or not an object. A trigger with a response_key does
// nothing if the response lacks that key, or has null there.
func (r *Rules) Answer(a Answer) []Step {
	object, ok := a.Response.(map[string]any)
	if r == nil || !ok || object == nil || a.Secret {
		return nil
	}
	var steps []Step
	for _, rule := range r.answers {
		if !slices.Contains(a.Names, rule.tool) {
			continue
		}
		value := valueAt(object, rule.key)
		if value == nil {
			continue
		}
		step := rule.step
		if step.Value == nil {
			step.Value = value
		}
		steps = append(steps, step)
	}
	return steps
}

// valueAt returns the value under a key of an object, else under a dotted path, nil if there is neither. Without key it is
// the object.
func valueAt(object map[string]any, key string) any {
	if key == "" {
		return object
	}
	if v, ok := object[key]; ok {
		return v
	}
	var v any = object
	for part := range strings.SplitSeq(key, ".") {
		inner, _ := v.(map[string]any)
		v = inner[part]
	}
	return v
}

// Updates returns the changes that steps make of variables with these values, in the order of the steps. Of the steps
// of a variable the first counts whose From is the value before the message; it changes nothing if the variable has the
// value already. A variable that is missing in values is null. values is not modified.
func Updates(steps []Step, values map[string]any) []Update {
	var updates []Update
	var decided []string
	for _, s := range steps {
		before := values[s.Variable]
		if slices.Contains(decided, s.Variable) || s.From != nil && !model.Equal(s.From, before) {
			continue
		}
		decided = append(decided, s.Variable)
		if !model.Equal(s.Value, before) {
			updates = append(updates, Update{s.Variable, s.Value})
		}
	}
	return updates
}
