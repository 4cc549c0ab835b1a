package bindings

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// When a trigger of a context variable applies, to the text of an agent or to the answer of a question. Nothing in
// oneturn calls this yet: it is for the reader of agent messages.

// MatchText returns the effect of a text of an agent: whether it sets the variable to t.Value, and
// whether the message is hidden from people. There is one rule for both, so what is hidden is
// decided where the text arises and is the same whenever it is shown again: a message is
// hidden if a trigger with UIHidden matches it, also when its variable is set already.
//
// The agent's name is compared exactly, an empty t.Agent is any agent. White space around the
// text does not count, letter case does not count. Patterns of [MatchRegex] are RE2; one that
// is invalid, longer than 512 bytes or repeats too much never matches. The caller compares
// t.From.
func (t Trigger) MatchText(agent, text string) (set, hidden bool) {
	if t.Type != TriggerAgentText || t.Agent != "" && t.Agent != agent {
		return false, false
	}
	text = strings.TrimSpace(text)
	set = slices.ContainsFunc(t.Patterns, func(pattern string) bool { return t.Match.matches(pattern, text) })
	return set, set && t.UIHidden
}

// matches compares a trimmed text. A blank pattern matches nothing.
func (k MatchKind) matches(pattern, text string) bool {
	trimmed := strings.TrimSpace(pattern)
	if trimmed == "" {
		return false
	}
	lower := strings.ToLower(text)
	switch k {
	case MatchEquals:
		return lower == strings.ToLower(trimmed)
	case MatchContains: // its white space counts: it may part words
		return strings.Contains(lower, strings.ToLower(pattern))
	case MatchRegex:
		re := compilePattern(pattern)
		return re != nil && re.MatchString(text)
	}
	return false
}

// compilePattern compiles the pattern of a trigger, nil if it cannot be used. A search takes
// time in proportion to text × program, so both the pattern and its program are bounded.
func compilePattern(pattern string) *regexp.Regexp {
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

// MatchResponse returns the value that the answer to a tool's question gives the variable. ok
// is false when the trigger is about another tool, when the response is not an object, and when
// the value is null.
//
// Manifests name a UI tool by its component or by its function: t.Tool is compared with tool
// and with its other names. t.ResponseKey is a key of the response, else a dotted path in it;
// when neither is there, or it is "", the value is the whole response. The value is part of
// response, not a copy.
func (t Trigger) MatchResponse(tool string, response any, otherNames ...string) (value any, ok bool) {
	if t.Type != TriggerUIResponse || t.Tool == "" || t.Tool != tool && !slices.Contains(otherNames, t.Tool) {
		return nil, false
	}
	object, ok := response.(map[string]any)
	if !ok || object == nil {
		return nil, false
	}
	value = answer(object, t.ResponseKey)
	return value, value != nil
}

// answer returns the value under a key or dotted path, the whole object if it is not there.
func answer(object map[string]any, key string) any {
	if key == "" {
		return object
	}
	if v, ok := object[key]; ok {
		return v
	}
	var v any = object
	for part := range strings.SplitSeq(key, ".") {
		inner, _ := v.(map[string]any)
		next, there := inner[part]
		if !there {
			return object
		}
		v = next
	}
	return v
}
