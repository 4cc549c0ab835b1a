package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Canonical JSON has one spelling for each value tree, so that equal data has equal bytes and one fingerprint. One
// switch writes every type that a tree may have; canonical.go marks bytes that are canonical already.

const opEncode = "encode JSON"

// AppendJSON appends the canonical JSON of a value tree to dst: no white space, keys sorted
// by their bytes, numbers as written, only the escapes that JSON demands. A [json.RawMessage]
// is decoded by the rules of [Decode] and made canonical, a [Canonical] copied; an empty one is
// null.
//
// Another Go type, a bad number or invalid UTF-8 is a bad_args error, nesting over [MaxDepth]
// (also of a tree that contains itself) a too_large error; dst is then lost.
func AppendJSON(dst []byte, v any) ([]byte, error) { return appendValue(dst, v, 0) }

// appendValue appends v, which lies inside depth containers.
func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v)
	case json.Number:
		if n, reason := scanNumber(string(v)); reason != "" || n != len(v) {
			return nil, encodeError(CodeBadArgs, fmt.Sprintf("json.Number of %d characters is not a JSON number within the limits of Decode", len(v)))
		}
		return append(dst, v...), nil
	case []any:
		return appendArray(dst, v, depth+1)
	case map[string]any:
		return appendObject(dst, v, depth+1)
	case json.RawMessage:
		if len(v) == 0 {
			return append(dst, "null"...), nil
		}
		p := parser{s: string(v)}
		if depth > 0 {
			p.nodes = eventNodes
		}
		tree, err := p.document()
		if err != nil {
			return nil, &Error{Code: CodeBadArgs, Op: opEncode, Msg: "raw message", Err: err}
		}
		return appendValue(dst, tree, depth)
	case Canonical:
		if depth > dataDepth {
			return nil, tooDeep()
		}
		if len(v) == 0 {
			return append(dst, "null"...), nil
		}
		return append(dst, v...), nil
	default:
		return nil, encodeError(CodeBadArgs, fmt.Sprintf("%T cannot be part of a value tree: use nil, bool, string, json.Number, []any, map[string]any or json.RawMessage", v))
	}
}

func appendArray(dst []byte, a []any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, tooDeep()
	}
	dst = append(dst, '[')
	for i, v := range a {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, v, depth); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, m map[string]any, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return nil, tooDeep()
	}
	const usual = 24 // keys of a usual object are sorted without an allocation
	keys := make([]string, 0, usual)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, k); err != nil {
			return nil, err
		}
		if dst, err = appendValue(append(dst, ':'), m[k], depth); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendString quotes s. Of the characters above 0x1f only '"' and '\' are escaped.
func appendString(dst []byte, s string) ([]byte, error) {
	const hex = "0123456789abcdef"
	if !utf8.ValidString(s) {
		return nil, encodeError(CodeBadArgs, fmt.Sprintf("a string of %d bytes is not UTF-8 at byte %d", len(s), invalidUTF8(s)))
	}
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"'), nil
}

func tooDeep() error {
	return encodeError(CodeTooLarge, fmt.Sprintf("nested more than %d deep: flatten the data", MaxDepth))
}

func encodeError(code Code, msg string) error { return &Error{Code: code, Op: opEncode, Msg: msg} }
