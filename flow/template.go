package flow

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// template is a text of an orchestration with references between double braces. A text that is one
// reference and nothing else keeps the type of its value; within longer text a value becomes text.
type template []fragment

// fragment is literal text, or a path if the path is not nil.
type fragment struct {
	text string
	path []string // without the leading dot that may be written
}

// parseTemplate reads a text with at most a number of references. `\{{` is the text `{{`. Between
// braces only a path is allowed: names separated by dots, no functions, conditions or texts.
func parseTemplate(text string, most int) (template, error) {
	var t template
	var escaped []byte // the literal text so far, if it has escaped braces
	for {
		before, after, ok := strings.Cut(text, "{{")
		if ok && strings.HasSuffix(before, `\`) {
			escaped = append(append(escaped, before[:len(before)-1]...), "{{"...)
			text = after
			continue
		}
		literal := before
		if escaped != nil {
			escaped = append(escaped, before...)
			literal, escaped = string(escaped), nil
		}
		if literal != "" {
			t = append(t, fragment{text: literal})
		}
		if !ok {
			return t, nil
		}
		if most--; most < 0 {
			return nil, errTooMany
		}
		inner, _, ok := strings.Cut(after[:min(len(after), maxReference+len("}}"))], "}}")
		if !ok {
			return nil, errReference
		}
		path, err := parsePath(strings.TrimSpace(inner))
		if err != nil {
			return nil, err
		}
		t, text = append(t, fragment{path: path}), after[len(inner)+len("}}"):]
	}
}

// maxReference bounds what is between the braces of a reference, in bytes.
const maxReference = 1024

// errTooMany is why a text with too many references is not read.
var errTooMany = errors.New("too many references")

// parsePath reads what is between braces.
func parsePath(text string) ([]string, error) {
	text = strings.TrimPrefix(text, ".")
	if strings.Count(text, ".") >= maxSegments || strings.ContainsFunc(text, notInPath) {
		return nil, errReference
	}
	path := strings.Split(text, ".")
	if slices.Contains(path, "") {
		return nil, errReference
	}
	return path, nil
}

// notInPath reports whether a character cannot be part of a path. Names are letters, marks, digits,
// `_`, `-`, `:` and `@`.
func notInPath(r rune) bool {
	if r < utf8.RuneSelf {
		return !isAlphanumeric(r) && !strings.ContainsRune("_-:@.", r)
	}
	return !unicode.In(r, unicode.L, unicode.M, unicode.N)
}

// references returns the number of paths.
func (t template) references() (n int) {
	for _, f := range t {
		if f.path != nil {
			n++
		}
	}
	return n
}

// whole returns the path of a text that is one reference and nothing else.
func (t template) whole() (path []string, ok bool) {
	if len(t) != 1 || t[0].path == nil {
		return nil, false
	}
	return t[0].path, true
}
