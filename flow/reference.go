package flow

import (
	"errors"
	"strconv"
	"strings"
)

// maxSegments bounds the path of a reference.
const maxSegments = 32

var errReference = errors.New("not a reference")

// reference is `$<call>.output.<path>`: the output of an earlier call of the plan, or a part of it.
type reference struct {
	call int
	path []string // empty: the whole output
}

// isReference reports whether a text is meant as a reference: it begins with `$` and contains
// `.output.`, or is `$<digits>.output`. Only whole texts are references; there are none within
// longer texts and none in keys.
func isReference(text string) bool {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return false
	}
	if strings.Contains(rest, ".output.") {
		return true
	}
	digits, ok := strings.CutSuffix(rest, ".output")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isEscaped reports whether a text is a reference with a second `$` in front: the text itself is
// meant, with one `$` less.
func isEscaped(text string) bool {
	return strings.HasPrefix(text, "$$") && isReference(text[1:])
}

// parseReference reads a text for which isReference is true. A segment of the path may contain
// anything but a dot.
func parseReference(text string) (reference, error) {
	digits, path, hasPath := strings.Cut(text[1:], ".output")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return reference{}, errReference
	}
	call, err := strconv.Atoi(digits)
	if err != nil {
		return reference{}, errReference
	}
	if !hasPath {
		return reference{}, errReference
	}
	if path == "" {
		return reference{call: call}, nil
	}
	path, ok := strings.CutPrefix(path, ".")
	if !ok || path == "" || strings.ContainsRune(path, '\n') || strings.Count(path, ".") >= maxSegments {
		return reference{}, errReference
	}
	return reference{call: call, path: strings.Split(path, ".")}, nil
}
