package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// MaxRules bounds the rules of one workflow.
const MaxRules = 2000

const maxFindings = 1000

// Options are what the rules of a workflow refer to.
type Options struct {
	Agents    []string // of the workflow; empty: not known, so every name is an agent
	Variables []string // context variables that the manifests declare, for findings
	Decider   string   // tool that answers conditions for a model; "" = none

	// Locate returns the place of a JSON pointer in a manifest, given by its number; nil = places are not known.
	Locate func(manifest int, pointer string) (file string, line int)
}

// Manifest is a file or a key of a file that has rules.
type Manifest struct {
	// JSON is the content of handoffs.yaml or of the key handoffs of oneturn.yaml: a list of rules, a map
	// source → targets, or either of them under handoffs, handoff_rules or rules.
	JSON []byte
	// Strict makes a key that is not one of [Keys] an error that leaves out its rule, as in oneturn.yaml. Otherwise, only
	// a key that looks like a misspelt one is reported.
	Strict bool
}

// Keys returns the keys of a rule in oneturn.yaml.
func Keys() []string {
	return []string{"from", "to", "condition", "conditions", "condition_type", "scope", "trigger", "description"}
}

// Compile reads the rules of a workflow. Rules of several manifests are numbered one after the other. A rule that has
// an error is left out alone.
func Compile(opts Options, manifests ...Manifest) (*Rules, []diag.Finding) {
	c := compiler{Options: opts, rules: &Rules{
		bySource: make(map[string][]*Rule), ignored: make(map[string][]Ignored), names: newNames(opts.Agents), decider: opts.Decider,
	}}
	for i, m := range manifests {
		c.manifest, c.strict = i, m.Strict
		c.read(json.RawMessage(m.JSON), "")
	}
	if c.next > MaxRules {
		c.addf(diag.SeverityError, "", "too_many_rules", "split the workflow", "there are %d handoff rules; those after %d are ignored", c.next, MaxRules)
	}
	c.checkUnreachable()
	return c.rules, c.found
}

// compiler reads the manifests of one workflow.
type compiler struct {
	Options

	rules    *Rules
	found    []diag.Finding
	manifest int // the current one
	strict   bool
	next     int // number of the next rule
}

// entry is one rule as it is written.
type entry struct {
	fields  map[string]any
	source  any    // of a map source → targets; nil if the entry has it
	pointer string // of the entry
	mozaiks bool   // has the keys of MozaiksAI, which ignores the condition of an after_work rule

	unknownKey bool // it has a key that is an error
}

func (c *compiler) locate(pointer string) (file string, line int) {
	if c.Locate == nil {
		return "", 0
	}
	return c.Locate(c.manifest, pointer)
}

func (c *compiler) addf(severity diag.Severity, pointer, code, fix, format string, args ...any) {
	file, line := c.locate(pointer)
	if len(c.found) >= maxFindings && code != "too_many_rules" {
		return
	}
	f := diag.Finding{Severity: severity, File: file, Line: line, Field: pointer, Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}
	if !slices.Contains(c.found, f) {
		c.found = append(c.found, f)
	}
}

func (c *compiler) errorf(pointer, code, fix, format string, args ...any) {
	c.addf(diag.SeverityError, pointer, code, fix, format, args...)
}

func (c *compiler) warnf(pointer, code, fix, format string, args ...any) {
	c.addf(diag.SeverityWarning, pointer, code, fix, format, args...)
}

// setting reports whether a key next to the rules is not a source.
func setting(key string) bool { return key == "decider" || key == "description" || key == "version" }

const exampleRule = "write for example - {from: A, to: B}"

// read reads rules of any shape.
func (c *compiler) read(text json.RawMessage, pointer string) {
	value, err := events.Decode(text)
	if err != nil {
		c.errorf(pointer, "bad_rule", exampleRule, "the handoff rules cannot be read: %v", err)
		return
	}
	switch v := value.(type) {
	case nil:
	case []any:
		for i, item := range v {
			c.entry(item, nil, pointer+"/"+strconv.Itoa(i))
		}
	case map[string]any:
		c.readMap(text, v, pointer)
	default:
		c.errorf(pointer, "bad_rule", exampleRule, "handoff rules must be a list")
	}
}

// readMap reads rules that are wrapped in a key, or a map source → targets in the order of the file.
func (c *compiler) readMap(text json.RawMessage, v map[string]any, pointer string) {
	keys, parts := inOrder(text)
	for _, wrapper := range []string{"handoffs", "handoff_rules", "rules"} {
		if _, ok := v[wrapper]; ok {
			c.read(parts[wrapper], pointer+"/"+wrapper)
			return
		}
	}
	for _, key := range keys {
		at := pointer + "/" + escaped(key)
		if setting(key) {
			continue
		}
		if list, ok := v[key].([]any); ok {
			for i, item := range list {
				c.entry(item, key, at+"/"+strconv.Itoa(i))
			}
			continue
		}
		c.entry(v[key], key, at)
	}
}

// inOrder returns the keys of a JSON object in their order, and the text of each value.
func inOrder(text json.RawMessage) (keys []string, parts map[string]json.RawMessage) {
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, nil // cannot happen: it has been decoded
	}
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return keys, parts
		}
		if name, ok := key.(string); ok {
			keys = append(keys, name)
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return keys, parts
		}
	}
	return keys, parts
}

func escaped(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// The keys of an entry, those with one meaning in the order in which they are used.

func sourceKeys() []string { return []string{"source_agent", "from_agent", "from", "source"} }

func targetKeys() []string { return []string{"target_agent", "to_agent", "to", "target"} }

func ruleKeys() []string {
	return slices.Concat(sourceKeys(), targetKeys(), []string{
		"targets", "handoff_type", "condition", "conditions", "condition_type", "condition_scope", "scope", "trigger", "transition_target", "description",
	})
}

// first returns the value of the first key that is there, not null and not an empty text.
func first(fields map[string]any, keys ...string) (value any, key string) {
	for _, k := range keys {
		if v := fields[k]; v != nil && v != "" {
			return v, k
		}
	}
	return nil, keys[0]
}

// entry reads an item of a list of rules, which has one target or several.
func (c *compiler) entry(value, source any, pointer string) {
	e := entry{source: source, pointer: pointer}
	switch v := value.(type) {
	case map[string]any:
		e.fields = v
	case string:
		if source == nil {
			c.badEntry(value, pointer)
			return
		}
		e.fields = map[string]any{"to": v}
	default:
		c.badEntry(value, pointer)
		return
	}
	_, e.mozaiks = e.fields["source_agent"]
	e.unknownKey = c.checkKeys(e)
	for i, target := range e.targets() {
		single := e
		single.fields = target
		if _, several := e.fields["targets"].([]any); several {
			single.pointer = pointer + "/targets/" + strconv.Itoa(i)
		}
		c.rule(single)
	}
}

// checkKeys reports the keys of an entry that are not known. It returns whether one is an error.
func (c *compiler) checkKeys(e entry) (refused bool) {
	known := ruleKeys()
	if c.strict {
		known = Keys()
	}
	for _, key := range slices.Sorted(maps.Keys(e.fields)) {
		if slices.Contains(known, key) {
			continue
		}
		near := nearestName(key, known)
		at := e.pointer + "/" + escaped(key)
		switch {
		case c.strict && near != "":
			c.errorf(at, "unknown_key", "did you mean "+near+"?", "a handoff rule has no key %s", shown(key))
		case c.strict:
			c.errorf(at, "unknown_key", "known: "+strings.Join(known, ", "), "a handoff rule has no key %s", shown(key))
		case near != "":
			c.warnf(at, "misspelt_key", "did you mean "+near+"?", "key %s of a handoff rule is not known and is ignored", shown(key))
		}
		refused = refused || c.strict
	}
	return refused
}

func (c *compiler) badEntry(value any, pointer string) {
	c.number()
	c.errorf(pointer, "bad_rule", exampleRule, "a handoff rule must be a map, not %s", typeName(value))
}

// number takes the next number.
func (c *compiler) number() int {
	c.next++
	return c.next - 1
}

// targets returns the fields of each target: of the list targets, or of a target that is a list.
func (e *entry) targets() []map[string]any {
	known := ruleKeys()
	with := func(fields map[string]any) map[string]any {
		merged := make(map[string]any)
		for _, from := range []map[string]any{e.fields, fields} {
			for _, k := range known {
				if v, ok := from[k]; ok && k != "targets" {
					merged[k] = v
				}
			}
		}
		return merged
	}
	list, several := e.fields["targets"].([]any)
	var key string
	if !several {
		var value any
		value, key = first(e.fields, targetKeys()...)
		if list, several = value.([]any); !several {
			return []map[string]any{e.fields}
		}
	}
	var all []map[string]any
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok && key == "" {
			all = append(all, with(fields))
			continue
		}
		if key == "" {
			all = append(all, with(map[string]any{targetKeys()[0]: item}))
			continue
		}
		all = append(all, with(map[string]any{key: item}))
	}
	if len(all) == 0 {
		all = append(all, with(map[string]any{targetKeys()[0]: nil, key: nil}))
	}
	return all
}

// typeName names the JSON type of a value.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "a number"
}

// shown quotes a text of a manifest, cut to a length that people read.
func shown(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}
