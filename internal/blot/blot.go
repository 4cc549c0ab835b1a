// Package blot takes secrets out of what strangers say who were told them: of texts, and of the
// strings of JSON values, however these are escaped.
package blot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

const (
	instead = "[secret]" // what a secret becomes
	minimum = 4          // shorter secrets are not looked for, in bytes: they are part of too many words
)

// Secrets are texts that must not be shown. The zero value has none. It is immutable.
type Secrets struct{ texts []string }

// New returns secrets. Of one with several lines each line is a secret too: programs print line by
// line.
func New(texts ...string) Secrets {
	var all []string
	add := func(text string) {
		if text = strings.TrimSpace(text); len(text) >= minimum {
			all = append(all, text)
		}
	}
	for _, text := range texts {
		add(text)
		for line := range strings.Lines(text) {
			add(line)
		}
	}
	slices.SortFunc(all, func(a, b string) int { // a secret that holds another goes first
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	return Secrets{slices.Compact(all)}
}

// Text replaces the secrets in a text.
func (s Secrets) Text(text string) string {
	for _, secret := range s.texts {
		text = strings.ReplaceAll(text, secret, instead)
	}
	return text
}

// JSON replaces the secrets in the strings of a valid JSON value, which stays valid: what is no
// string stays as it is.
func (s Secrets) JSON(value json.RawMessage) json.RawMessage {
	if len(s.texts) == 0 {
		return value
	}
	var out []byte // nil until something is replaced
	for at := 0; at < len(value); {
		begin := bytes.IndexByte(value[at:], '"')
		if begin < 0 {
			begin = len(value) - at
		}
		end := at + begin + literal(value[at+begin:])
		shown, replaced := s.literal(value[at+begin : end])
		if replaced && out == nil {
			out = append(make([]byte, 0, len(value)), value[:at]...)
		}
		if out != nil {
			out = append(append(out, value[at:at+begin]...), shown...)
		}
		at = end
	}
	if out == nil {
		return value
	}
	return out
}

// literal is the length of the string that a part of a JSON value begins with.
func literal(rest []byte) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(rest)
}

// literal replaces the secrets in one string, as JSON writes it.
func (s Secrets) literal(quoted []byte) (shown []byte, replaced bool) {
	var text string
	if len(quoted) < minimum || json.Unmarshal(quoted, &text) != nil {
		return quoted, false
	}
	clean := s.Text(text)
	if clean == text {
		return quoted, false
	}
	shown, err := json.Marshal(clean)
	if err != nil { // a string has a JSON form
		return []byte(`""`), true
	}
	return shown, true
}
