package bindings

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Readers of single settings (object, text, flag, list, number, size) that refuse the whole tool on an error.
// tool_address.go, tool_schemas.go, tool_limits.go, tool_guards.go and cache_policy.go use them.

// entryReader reads the settings of one tool or server: an error in one of them disables it as a whole,
// since without the setting it would do something else than its author wants.
type entryReader struct {
	*manifest

	what    string       // "tool charge"
	file    string       // the manifest
	problem *bindProblem // the first one
}

// refusef reports why the tool or server cannot be used.
func (o *entryReader) refusef(at place, code, fix, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.errorf(at, code, fix, "%s cannot be used: %s", o.what, text)
	if o.problem == nil {
		o.problem = &bindProblem{at: at, text: text, fix: fix, reported: true}
	}
}

// folder is the folder of the manifest on the disk.
func (o *entryReader) folder() string {
	return filepath.Join(o.root, filepath.FromSlash(path.Dir(o.file)))
}

// object returns n if it is a map, else it refuses, as for a key that the object does not have.
func (o *entryReader) object(n *node, object, example string) *node {
	if !n.is(mapNode) {
		o.refusef(n.at(o.file), "wrong_shape", "write for example "+example, "%s must be a map", object)
		return nil
	}
	o.problem = cmp.Or(o.problem, o.strict(n, o.file, object))
	return n
}

// text reads an optional text. Anything else is refused.
func (o *entryReader) text(n *node, key string) string {
	v := n.get(key)
	if v.absent() {
		return ""
	}
	s := v.str()
	if s == "" || strings.ContainsFunc(s, control) {
		o.refusef(v.at(o.file), "wrong_shape", "write a text", "%s must be a text of one line", key)
		return ""
	}
	return s
}

// flag reads an optional boolean.
func (o *entryReader) flag(n *node, key string) bool {
	v := n.get(key)
	if v.absent() {
		return false
	}
	on, ok := v.truth()
	if !ok {
		o.refusef(v.at(o.file), "wrong_shape", "write true or false", "invalid %s %s: must be true or false", key, v.shown())
	}
	return on
}

// list reads a text or a list of texts.
func (o *entryReader) list(n *node, key, example string) []string {
	v := n.get(key)
	if v.absent() {
		return nil
	}
	all := v.texts()
	if len(all) == 0 || v.is(listNode) && len(all) < len(v.items) || slices.ContainsFunc(all, func(s string) bool { return strings.ContainsFunc(s, control) }) {
		o.refusef(v.at(o.file), "wrong_shape", "write for example "+key+": "+example, "%s must be a list of texts", key)
		return nil
	}
	return all
}

// control reports letters that no setting may hold: they could end a header or a line of a log.
func control(r rune) bool { return r < ' ' || r == 0x7f }

// count reads an optional whole number from 1 on.
func (o *entryReader) count(n *node, key string, most int) int {
	v := n.get(key)
	if v.absent() {
		return 0
	}
	c, err := strconv.Atoi(v.text)
	if !v.is(numberNode) || err != nil || c < 1 || c > most {
		o.refusef(v.at(o.file), "bad_number", "write for example "+key+": 4", "invalid %s %s: must be a whole number from 1 to %d", key, v.shown(), most)
		return 0
	}
	return c
}

// size reads a number of bytes, with or without a unit.
func (o *entryReader) size(n *node, key string, most int) int {
	units := map[string]float64{
		"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "kb": 1e3, "mb": 1e6, "gb": 1e9,
	}
	bytes := -1.0
	if m := regexp.MustCompile(`^([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z]*)$`).FindStringSubmatch(strings.TrimSpace(n.text)); m != nil && (n.is(textNode) || n.is(numberNode)) {
		if unit, ok := units[strings.ToLower(m[2])]; ok {
			number, _ := strconv.ParseFloat(m[1], 64)
			bytes = math.Round(number * unit)
		}
	}
	if bytes < 1 || bytes > float64(most) {
		o.refusef(n.at(o.file), "bad_size", "write for example "+key+": 64KiB", "invalid %s %s: it must be from 1 byte to %d MiB", key, quoted(n.text), most>>20)
		return 0
	}
	return int(bytes)
}

// rules reads what is checked and bounded around a tool, whatever its kind.
func (o *entryReader) rules(n *node, t *toolEntry) {
	o.schemas(n, t)
	if c := n.get("cache"); !c.absent() {
		t.cache, t.cacheAt = o.cache(c), c.at(o.file)
	}
	if l := n.get("limits"); !l.absent() {
		t.limits, t.shared = o.limits(l), "" // it is counted on its own
	}
	if g := n.get("guards"); !g.absent() {
		t.guards = append(slices.Clip(t.guards), o.guards(g)...) // the guards of a shared tool stay
	}
}
