package bindings

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

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

// object returns n if it is a map, else it refuses. Keys that the object does not have are reported.
func (o *entryReader) object(n *node, object, example string) *node {
	if !n.is(mapNode) {
		o.refusef(n.at(o.file), "wrong_shape", "write for example "+example, "%s must be a map", object)
		return nil
	}
	o.strict(n, o.file, object)
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
		o.refusef(v.at(o.file), "wrong_shape", "write true or false", "%s is %s, and must be true or false", key, v.shown())
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
