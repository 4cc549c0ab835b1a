package secrets

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/oneturn/oneturn/events"
)

// Asks reports whether the payload or the schema of a question asks for a secret: whether it, or
// the spec of a field anywhere in it, is marked as one (maskInput, password, secret, secureTextEntry
// and the like are set), or is of a kind such as password (type, format, widget, inputMode, variant
// and the like say so). Case and everything but letters and digits do not matter.
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
				if masks(name, value) {
					return true
				}
				open = append(open, value)
			}
		case []any:
			open = append(open, v...)
		}
	}
	return false
}

// mentions reports whether a document may have a word that marks a secret: most have none, and a
// large one is costly to decode. A letter may be written as an escape.
func mentions(document []byte) bool {
	lower := bytes.ToLower(document)
	return slices.ContainsFunc([]string{"mask", "pass", "secret", "secure", "sensitive", `\u004`, `\u005`, `\u006`, `\u007`}, func(word string) bool {
		return bytes.Contains(lower, []byte(word))
	})
}

// masks reports whether one entry of an object says that what is typed is not to be seen.
func masks(name string, value any) bool {
	switch word(name) {
	case "mask", "masked", "maskinput", "inputmasked", "ismasked", "password", "ispassword", "passwordfield", "secret", "issecret",
		"secure", "issecure", "securetextentry", "sensitive", "issensitive":
		return isSet(value)
	case "type", "inputtype", "fieldtype", "controltype", "componenttype", "elementtype", "datatype", "format", "inputformat", "widget",
		"uiwidget", "inputwidget", "mode", "inputmode", "keyboardtype", "textcontenttype", "variant", "inputvariant", "control", "component",
		"element", "kind", "fieldkind", "input", "field", "as", "render", "renderas", "autocomplete":
		return kindOfSecret(value)
	}
	return false
}

// isSet reports whether the value of a mark sets it.
func isSet(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case json.Number:
		return strings.ContainsAny(mantissa(v.String()), "123456789")
	case string:
		return slices.Contains([]string{"true", "yes", "on", "1", "y", "t", "always", "required", "password", "secret"}, word(v))
	}
	return false
}

// mantissa is a number without its exponent.
func mantissa(number string) string {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		return number[:i]
	}
	return number
}

// kindOfSecret reports whether a kind of field, or one in a list or an object of kinds, is one of
// those that hide what is typed.
func kindOfSecret(value any) bool {
	switch v := value.(type) {
	case string:
		switch w := word(v); w {
		case "password", "secret", "masked", "currentpassword", "newpassword", "securetext", "visiblepassword":
			return true
		default:
			kind := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(w, "field"), "input"), "text")
			return kind == "password" || kind == "secret" || kind == "secure" || kind == "masked"
		}
	case []any:
		return slices.ContainsFunc(v, kindOfSecret)
	}
	return false
}

// word is a name or a kind without case and everything but letters and digits.
func word(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
