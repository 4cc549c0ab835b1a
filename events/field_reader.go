package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A decoder of an event lists its fields; the reader here looks each up at its path, checks its type and size, and
// keeps the first error. Ids and names have a bound and no control characters.

// MaxIDBytes is the longest id or name that an event may carry.
const MaxIDBytes = 1024

// MissingFieldError is the error for a turn or cancel that does not name its chat or turn. No
// response can be addressed without them, so such an event becomes a dead letter.
type MissingFieldError struct {
	Field  string // chat_id or turn_idempotency_key
	Places string // where it is looked for
}

// Error implements error.
func (e *MissingFieldError) Error() string {
	return fmt.Sprintf("%s is missing: send it as %s", e.Field, e.Places)
}

// fields reads typed values at dotted paths of an event and keeps the first error, so that a
// decoder reads as the list of its fields.
type fields struct {
	data map[string]any
	err  error
}

// lookup returns the value at path, nil when something on the way is absent.
func (f *fields) lookup(path string) any {
	m := f.data
	for {
		key, rest, more := strings.Cut(path, ".")
		if !more {
			return m[key]
		}
		m, _ = m[key].(map[string]any)
		path = rest
	}
}

// id returns the first id among paths. A number is an id by its spelling; absent, null and
// "" count as not there.
func (f *fields) id(paths ...string) string { return f.first(true, checkID, paths) }

// callID is id for ids of calls and questions, which are longer than those they are made of.
func (f *fields) callID(paths ...string) string { return f.first(true, checkCallID, paths) }

// text returns the first string among paths, under the rules for ids.
func (f *fields) text(paths ...string) string { return f.first(false, checkID, paths) }

// name is text for a [Name].
func (f *fields) name(paths ...string) string { return Name(f.text(paths...)) }

func (f *fields) first(numbers bool, check func(field, id string) error, paths []string) string {
	for _, path := range paths {
		s, isText := "", false
		switch v := f.lookup(path).(type) {
		case nil:
			continue
		case string:
			s, isText = v, true
		case json.Number:
			s, isText = string(v), numbers
		default:
		}
		if !isText {
			f.fail(wrongType(path, "a string", f.lookup(path)))
			return ""
		}
		if s == "" {
			continue
		}
		f.fail(check(path, s))
		return s
	}
	return ""
}

// optionalID is id for a value that others define: an invalid id counts as absent.
func (f *fields) optionalID(path string) string {
	g := fields{data: f.data}
	if s := g.id(path); g.err == nil {
		return s
	}
	return ""
}

// object returns the object at path, nil when it is absent or null.
func (f *fields) object(path string) map[string]any {
	switch v := f.lookup(path).(type) {
	case nil:
		return nil
	case map[string]any:
		return v
	default:
		f.fail(wrongType(path, "an object", v))
		return nil
	}
}

// integer returns the whole number at path, 0 when it is absent or null.
func (f *fields) integer(path string) int64 {
	v := f.lookup(path)
	if v == nil {
		return 0
	}
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	f.fail(wrongType(path, "a whole number of 64 bits, without '.' or exponent", v))
	return 0
}

// count is integer for a number that producers in other languages write as a text or as a float.
func (f *fields) count(path string) int64 {
	v := f.lookup(path)
	if i, ok := whole(v); ok || v == nil {
		return i
	}
	f.fail(wrongType(path, "a whole number of 64 bits", v))
	return 0
}

// whole reads a whole number that may be written as a text, or as Python writes a float.
func whole(v any) (int64, bool) {
	text, isText := v.(string)
	if n, ok := v.(json.Number); ok {
		text, isText = string(n), true
	}
	if text = strings.TrimSpace(text); !isText || text == "" {
		return 0, false
	}
	digits, zeros, fraction := strings.Cut(text, ".")
	if fraction && (zeros == "" || strings.Trim(zeros, "0") != "") {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// parseTime reads a time as programs write them: RFC 3339, with a blank for the T, without a zone
// (which is UTC, as of Python's isoformat), in the form of HTTP, or seconds, milliseconds,
// microseconds or nanoseconds since 1970. Zero when it is absent or null.
func parseTime(field string, v any) (time.Time, error) {
	s, isText := "", false
	switch v := v.(type) {
	case nil:
		return time.Time{}, nil
	case string:
		s, isText = strings.TrimSpace(v), true
	case json.Number:
		s = string(v)
	}
	if t, ok := epoch(s); ok {
		return t, nil
	}
	if isText {
		for _, layout := range layouts() {
			if t, err := time.Parse(layout, s); err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, wrongType(field, "a time such as 2026-01-02T03:04:05Z", v)
}

// layouts are the forms of a time; a fraction of a second is read by all of them.
func layouts() []string {
	return []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00",
		"2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST", "20060102T150405Z0700", "20060102T150405",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", time.RFC1123, time.RFC1123Z, time.UnixDate, time.ANSIC,
	}
}

// epoch reads a number of seconds, or of a thousandth, millionth or milliardth part of them, since
// 1970. Its size distinguishes them: seconds reach the year 5138.
func epoch(s string) (time.Time, bool) {
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return time.Time{}, false
	}
	const most, thousand, units = 1e11, 1e3, 4
	n, err := strconv.ParseFloat(s, 64)
	for range units - 1 {
		if n >= most {
			n /= thousand
		}
	}
	if err != nil || n >= most {
		return time.Time{}, false
	}
	seconds := int64(n)
	return time.Unix(seconds, int64((n-float64(seconds))*float64(time.Second))).UTC(), true
}

// shallow refuses a value that is nested deeper than MaxDataDepth.
func (f *fields) shallow(path string) {
	if depthExceeds(f.lookup(path), MaxDataDepth) {
		f.fail(decodeError(fmt.Sprintf("%s is nested more than %d deep: flatten it", path, MaxDataDepth)))
	}
}

func depthExceeds(v any, limit int) bool {
	switch v := v.(type) {
	case []any:
		if limit == 0 {
			return true
		}
		for _, e := range v {
			if depthExceeds(e, limit-1) {
				return true
			}
		}
	case map[string]any:
		if limit == 0 {
			return true
		}
		for _, e := range v {
			if depthExceeds(e, limit-1) {
				return true
			}
		}
	default:
	}
	return false
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// require fails with a MissingFieldError when s, the value of field, is empty.
func (f *fields) require(s, field, places string) {
	if s == "" {
		f.fail(&Error{Code: CodeBadArgs, Op: opDecode, Err: &MissingFieldError{Field: field, Places: places}})
	}
}

// checkID validates an id by the rules of the wire: it ends up in subjects, headers and logs.
func checkID(field, id string) error { return checkText(field, id, MaxIDBytes) }

// checkCallID is checkID for the id of a call or question.
func checkCallID(field, id string) error { return checkText(field, id, MaxCallIDBytes) }

func checkText(field, id string, limit int) error {
	if len(id) > limit {
		return decodeError(fmt.Sprintf("%s has %d bytes: at most %d are allowed", field, len(id), limit))
	}
	if i := strings.IndexFunc(id, isDeceptive); i >= 0 {
		return decodeError(fmt.Sprintf("%s has a control character at byte %d: send plain text", field, i))
	}
	return nil
}

// isDeceptive reports whether r makes a line of text read as another one: control characters,
// line and paragraph separators, and what turns the direction of writing for what follows.
func isDeceptive(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
