package flow

import (
	"slices"
	"strings"
	"unicode"
)

// template is a text of an orchestration with references between double braces. A text that is one
// reference and nothing else keeps the type of its value; within longer text a value becomes text.
type template []fragment

// fragment is literal text, or a path if the path is not nil.
type fragment struct {
	text string
	path []string // without the leading dot that may be written
}

// parseTemplate reads a text. `\{{` is the text `{{`. Between braces only a path is allowed: names
// separated by dots, no functions, conditions or texts.
func parseTemplate(text string) (template, error) {
	var t template
	literal := ""
	for {
		before, after, ok := strings.Cut(text, "{{")
		if !ok {
			if literal += text; literal != "" {
				t = append(t, fragment{text: literal})
			}
			return t, nil
		}
		if escaped, ok := strings.CutSuffix(before, `\`); ok {
			literal, text = literal+escaped+"{{", after
			continue
		}
		if literal += before; literal != "" {
			t = append(t, fragment{text: literal})
			literal = ""
		}
		inner, rest, ok := strings.Cut(after, "}}")
		if !ok {
			return nil, errReference
		}
		path, err := parsePath(strings.TrimSpace(inner))
		if err != nil {
			return nil, err
		}
		t, text = append(t, fragment{path: path}), rest
	}
}

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
	return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_-:@.", r)
}

// hasReferences reports whether any fragment is a path.
func (t template) hasReferences() bool {
	for _, f := range t {
		if f.path != nil {
			return true
		}
	}
	return false
}

// whole returns the path of a text that is one reference and nothing else.
func (t template) whole() (path []string, ok bool) {
	if len(t) != 1 || t[0].path == nil {
		return nil, false
	}
	return t[0].path, true
}
