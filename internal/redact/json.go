package redact

import (
	"bytes"
	"encoding/json"
)

// JSON replaces the secrets in the strings of a valid JSON value, which stays valid: anything
// else stays as it is.
func (s Set) JSON(value json.RawMessage) json.RawMessage {
	if s.m == nil {
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
func (s Set) literal(quoted []byte) (shown []byte, replaced bool) {
	var text string
	if len(quoted) < Shortest || json.Unmarshal(quoted, &text) != nil {
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
