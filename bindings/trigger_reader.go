package bindings

import (
	"regexp/syntax"
	"slices"
)

// Triggers and the older transitions of a context variable, read into one [Trigger]. One that could never match
// is reported and ignored. Nothing evaluates them yet.

// Bounds of a trigger's regular expression.
const (
	maxPattern = 512   // bytes
	maxProgram = 1_000 // instructions it compiles to
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
	ResponseKey string    // ui_response: dotted path in the answer, "" = all of it
	From        any       // value the variable must have for this; nil = any
	Value       any       // value that agent_text sets: true unless a transition sets another
}

// readTriggers reads triggers[] and the older transitions[{from?, to?, trigger}].
func (m *manifest) readTriggers(n *node, file string, v *Variable) {
	for _, item := range m.list(n.get("triggers"), file, "triggers of "+v.Name) {
		m.readTrigger(item, file, v, nil, true)
	}
	for _, item := range m.list(n.get("transitions"), file, "transitions of "+v.Name) {
		to := any(true)
		if t := item.get("to"); !t.absent() {
			to = t.value()
		}
		m.readTrigger(unwrap(item, "trigger"), file, v, item.get("from").value(), to)
	}
	if t := n.get("trigger"); t.is(mapNode) {
		m.readTrigger(t, file, v, nil, true)
	}
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
		match := unwrap(n, "match")
		if match.is(textNode) || match.is(listNode) {
			t.Match, t.Patterns = MatchEquals, match.texts()
		}
		for _, kind := range []MatchKind{MatchEquals, MatchContains, MatchRegex} {
			if p := match.get(string(kind)).texts(); len(t.Patterns) == 0 && len(p) > 0 {
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

// addTrigger checks a trigger; one that could never match is ignored.
func (m *manifest) addTrigger(t Trigger, at place, v *Variable) {
	why, fix := "", ""
	switch {
	case t.Type == TriggerUIResponse && t.Tool == "":
		why, fix = "it has no tool", "add tool: the name of the UI tool"
	case t.Type == TriggerAgentText && len(t.Patterns) == 0:
		why, fix = "it has nothing to match", "add equals, contains or regex"
	case t.Match == MatchRegex && slices.ContainsFunc(t.Patterns, func(p string) bool { return !usablePattern(p) }):
		why, fix = "its regular expression cannot be used", "write it in RE2 syntax, in at most 512 bytes and without large repeats"
	}
	if why != "" {
		m.warnf(at, "bad_trigger", fix, "a trigger of context variable %s is ignored: %s", v.Name, why)
		return
	}
	if t.Type == TriggerAgentText && t.Agent == "" {
		m.warnf(at, "trigger_without_agent", "add agent", "a trigger of context variable %s has no agent: any agent's text sets it", v.Name)
	}
	v.Triggers = append(v.Triggers, t)
}

// usablePattern reports whether the pattern of a trigger can be compiled, case-insensitive. A search takes time in
// proportion to text × program, so both the pattern and its program are bounded. The program may have a quarter of
// the size of one in a model, because every text of an agent is searched.
func usablePattern(pattern string) bool {
	if len(pattern) > maxPattern {
		return false
	}
	tree, err := syntax.Parse("(?i)"+pattern, syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(tree.Simplify())
	return err == nil && len(program.Inst) <= maxProgram
}
