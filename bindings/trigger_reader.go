package bindings

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Triggers and the older transitions of a context variable, read into one [Trigger]. One that could never match
// is reported and ignored. trigger_rules.go evaluates them.

// Bounds of a trigger's regular expression.
const (
	maxPattern = 512   // bytes
	maxProgram = 1_000 // instructions it compiles to
)

// maxTriggers bounds the triggers of a workflow, maxRegexes its regular expressions in triggers: every text of an agent is
// searched for all of its patterns.
const (
	maxTriggers = 2_000
	maxRegexes  = 200
)

// TriggerType is what sets a variable.
type TriggerType string

// Types of triggers.
const (
	TriggerAgentText  TriggerType = "agent_text"  // an agent's text matches
	TriggerUIResponse TriggerType = "ui_response" // a UI tool got its answer
)

// MatchKind is how the text of an agent is compared: trimmed, letter case ignored.
type MatchKind string

// Kinds of matches.
const (
	MatchEquals   MatchKind = "equals"
	MatchContains MatchKind = "contains"
	MatchRegex    MatchKind = "regex" // finds the pattern anywhere
)

// Trigger sets a state variable.
type Trigger struct {
	Type        TriggerType
	Agent       string    // agent_text: whose text; "" = any agent's (the manifest names none)
	Match       MatchKind // agent_text
	Patterns    []string  // agent_text: one of them must match
	UIHidden    bool      // agent_text: the message is not shown
	Tool        string    // ui_response: the tool or component that asked
	ResponseKey string    // ui_response: key or dotted path in the answer, "" = all of it
	From        any       // value the variable must have for this; nil = any
	// Value is what the trigger sets: of agent_text true unless a transition sets another, of ui_response nil for the
	// value in the answer.
	Value any
}

// readTriggers reads triggers[], the older transitions[{from?, to?, trigger}] and trigger, in the order of the file.
func (m *manifest) readTriggers(n *node, file string, v *Variable) {
	if !n.is(mapNode) {
		return
	}
	for i, key := range n.keys {
		switch item := n.items[i]; {
		case key == "triggers":
			for _, t := range m.list(item, file, "triggers of "+v.Name) {
				m.readTrigger(t, file, v, nil, nil)
			}
		case key == "transitions":
			for _, t := range m.list(item, file, "transitions of "+v.Name) {
				m.readTrigger(unwrap(t, "trigger"), file, v, v.typed(t.get("from")), v.typed(t.get("to")))
			}
		case key == "trigger" && item.is(mapNode):
			m.readTrigger(item, file, v, nil, nil)
		}
	}
}

// typed returns a value as the type of the variable has it, else as it is written.
func (v *Variable) typed(n *node) any {
	value := n.value()
	if typed, ok := coerceVariable(v.Type, value); ok {
		return typed
	}
	return value
}

func (m *manifest) list(n *node, file, what string) []*node {
	if n.absent() {
		return nil
	}
	if !n.is(listNode) {
		m.warnf(n.at(file), "wrong_shape", "write a list", "%s must be a list; it is ignored", what)
		return nil
	}
	return m.bounded(n, file, what).items
}

func (m *manifest) readTrigger(n *node, file string, v *Variable, from, to any) {
	hidden, _ := n.get("ui_hidden").truth()
	t := Trigger{UIHidden: hidden, From: from, Value: to}
	switch kind := n.get("type").str(); kind {
	case string(TriggerAgentText), "":
		t.Type, t.Agent = TriggerAgentText, n.first("agent", "source_agent").str()
		if t.Value == nil {
			t.Value = true
		}
		match := unwrap(n, "match")
		if !match.is(mapNode) {
			t.Match, t.Patterns = MatchEquals, match.patterns()
		}
		for _, kind := range []MatchKind{MatchEquals, MatchContains, MatchRegex} {
			if p := match.get(string(kind)).patterns(); len(t.Patterns) == 0 && len(p) > 0 {
				t.Match, t.Patterns = kind, p
			}
		}
	case string(TriggerUIResponse):
		t.Type, t.Tool, t.ResponseKey = TriggerUIResponse, n.get("tool").str(), n.get("response_key").str()
	default:
		m.warnf(n.at(file), "bad_trigger", "write agent_text or ui_response", "context variable %s has a trigger of the unknown type %s", v.Name, quoted(kind))
		return
	}
	m.addTrigger(t, n.at(file), v)
}

// patterns returns the pattern, or the patterns of a list, as they are written: the white space around one may part words.
// A number or truth value is its text. Blank ones are left out.
func (n *node) patterns() []string {
	items := []*node{n}
	if n.is(listNode) {
		items = n.items
	}
	var all []string
	for _, item := range items {
		if item.absent() || item.is(listNode) || item.is(mapNode) || strings.TrimSpace(item.text) == "" {
			continue
		}
		all = append(all, item.text)
	}
	return all
}

// addTrigger checks a trigger; one that could never match is ignored.
func (m *manifest) addTrigger(t Trigger, at place, v *Variable) {
	why, fix := "", ""
	switch {
	case t.Type == TriggerUIResponse && t.Tool == "":
		why, fix = "it has no tool", "add tool: the name of the UI tool"
	case t.Type == TriggerAgentText && len(t.Patterns) == 0:
		why, fix = "it has nothing to match", "add equals, contains or regex"
	case t.Match == MatchRegex && slices.ContainsFunc(t.Patterns, func(p string) bool { return compileTrigger(p) == nil }):
		why, fix = "its regular expression cannot be used", "write it in RE2 syntax, without lookaround and back-references, in at most 512 bytes and without large repeats"
	case m.triggers >= maxTriggers:
		why, fix = fmt.Sprintf("the workflow has %d others", maxTriggers), "split the workflow"
	case t.Match == MatchRegex && m.regexes+len(t.Patterns) > maxRegexes:
		why, fix = fmt.Sprintf("the workflow has %d regular expressions in triggers", m.regexes), "use equals or contains, or one expression with alternatives"
	}
	if why != "" {
		m.warnf(at, "bad_trigger", fix, "a trigger of context variable %s is ignored: %s", v.Name, why)
		return
	}
	if t.Type == TriggerAgentText && t.Agent == "" {
		m.warnf(at, "trigger_without_agent", "add agent", "a trigger of context variable %s has no agent: any agent's text sets it", v.Name)
	}
	v.Triggers = append(v.Triggers, t)
	if m.triggers++; t.Match == MatchRegex {
		m.regexes += len(t.Patterns)
	}
}

// compileTrigger compiles the pattern of a trigger, case-insensitive; nil if it cannot be used. A search takes time in
// proportion to text × program, so both the pattern and its program are bounded. The program may have a quarter of
// the size of one in a model, because every text of an agent is searched.
func compileTrigger(pattern string) *regexp.Regexp {
	if len(pattern) > maxPattern {
		return nil
	}
	pattern = "(?i)" + pattern
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return re
}
