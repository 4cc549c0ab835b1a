package secrets

import (
	"regexp"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// AsksAs reports whether a question that is shown by a component asks for a secret: whether the
// component, like PasswordInput, is one that hides what is typed, or one of the documents does so by
// [Asks].
func AsksAs(component string, documents ...[]byte) bool {
	return kindOfSecret(component) || slices.ContainsFunc(documents, Asks)
}

// Asks reports whether the payload or the schema of a question asks for a secret: whether it, or
// the spec of a field anywhere in it, is marked as one (maskInput, password, secret, obscureText,
// secureTextEntry, writeOnly and the like are set), or is of a kind such as password (type, format,
// widget, inputType, echoMode, style and the like specify it). Marks count in tags of markup, in JSON
// within a text, and as entries of a list of names and values, too. Case and everything but letters
// and digits do not matter, and letters of other alphabets count as what they look like.
//
// A document of which not every value can be looked at, because it is not JSON or exceeds the bounds
// of [events.Decode], asks for a secret if it has one of the words.
func Asks(document []byte) bool {
	if !mentions(document) {
		return false
	}
	tree, err := events.Decode(document)
	if err != nil {
		return true
	}
	for open := []any{tree}; len(open) > 0; {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				if marksSecret(name, value) {
					return true
				}
				open = append(open, value)
			}
			if name, value, ok := pair(v); ok && marksSecret(name, value) {
				return true
			}
		case []any:
			open = append(open, v...)
		case string:
			if tagged(v) {
				return true
			}
			if inner, ok := inText(v); ok {
				open = append(open, inner)
			}
		}
	}
	return false
}

// mentions reports whether a document may mark a secret: most do not, and a large one is costly to
// decode. A letter may be written as an escape.
func mentions(document []byte) bool {
	text := word(string(document))
	return slices.ContainsFunc([]string{
		"mask", "pass", "secret", "secur", "sensitive", "obscur", "conceal", "redact", "writeonly", "echo", "hid", "onetimecode", "otp", "cccsc",
		"inputtype", "show", "char", "u004", "u005", "u006", "u007", "u01", "u02", "u03", "u04", "u05", "uff",
	}, func(part string) bool { return strings.Contains(text, part) })
}

// pair is the entry that an object of a name and a value stands for, as lists of attributes have them.
func pair(object map[string]any) (name string, value any, ok bool) {
	value, ok = object["value"]
	for _, key := range []string{"name", "key", "attribute", "property", "prop"} {
		if name, named := object[key].(string); named && ok {
			return name, value, true
		}
	}
	return "", nil, false
}

// inText returns the document that a text holds.
func inText(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil, false
	}
	inner, err := events.Decode([]byte(text))
	return inner, err == nil
}

// Tags of markup and their attributes.
var (
	tag       = regexp.MustCompile(`<([A-Za-z][\w.:-]*)([^<>]*)>`)
	attribute = regexp.MustCompile(`([A-Za-z_@:][\w.:@-]*)(?:\s*=\s*(?:\{?\s*"([^"]*)"|\{?\s*'([^']*)'|\{?([^\s"'{}]+)))?`)
)

// tagged reports whether a text has the tag of a field for a secret.
func tagged(text string) bool {
	for _, t := range tag.FindAllStringSubmatch(text, -1) {
		if kindOfSecret(t[1]) {
			return true
		}
		for _, a := range attribute.FindAllStringSubmatch(t[2], -1) {
			name, value := a[1], a[2]+a[3]+a[4]
			if marksSecret(name, value) || value == "" && marksSecret(name, true) {
				return true
			}
		}
	}
	return false
}
