package agentjson

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/events"
)

// The lenient reader: one descent over one value, which accepts JSON and the deviations that have one reading. It copies
// nothing before the first repair. The strict decoder reads what it returns.

// reader reads a value of s from pos on.
type reader struct {
	s       string
	pos     int
	depth   int // of lists and objects
	objects int // read so far

	dry  bool   // only looks ahead: nothing is written
	from int    // what precedes it in s is in out
	out  []byte // nil before the first repair

	repairs  set
	suspects bool
}

// json returns what was read up to end, repaired.
func (r *reader) json(end int) string {
	if r.out == nil {
		return r.s[r.from:end]
	}
	return string(append(r.out, r.s[r.from:end]...))
}

// replace writes with in place of s[start:end].
func (r *reader) replace(repair set, start, end int, with string) {
	r.repairs.add(repair)
	if r.dry {
		return
	}
	r.out = append(append(r.out, r.s[r.from:start]...), with...)
	r.from = end
}

// dropComma repairs the comma at an offset, which precedes a closing bracket. White space after it may have been repaired already, in which
// case out ends with the comma and what followed it.
func (r *reader) dropComma(comma, end int) {
	if r.from <= comma {
		r.replace(trailingComma, comma, end, "")
		return
	}
	r.repairs.add(trailingComma)
	i := bytes.LastIndexByte(r.out, ',') // only white space was written after it
	r.out = append(r.out[:i], r.out[i+1:]...)
}

// value reads any value at pos, where no white space is.
func (r *reader) value() *Error {
	if r.pos >= len(r.s) {
		return r.truncated()
	}
	switch c := r.s[r.pos]; {
	case c == '{':
		return r.object()
	case c == '[':
		return r.list()
	case r.quote() != noQuote:
		return r.str()
	default:
		return r.scalar()
	}
}

// enter steps into an object or a list.
func (r *reader) enter() *Error {
	if r.depth++; r.depth > events.MaxDepth {
		return r.fail(TooDeep, fmt.Sprintf("nested more than %d deep: flatten the data", events.MaxDepth))
	}
	r.pos++
	return nil
}

// atText reports whether something is here that may be the rest of a text.
func (r *reader) atText() bool {
	c, _ := utf8.DecodeRuneInString(r.s[r.pos:])
	return isNamePart(c) || r.quote() != noQuote
}

func (r *reader) at(c byte) bool { return r.pos < len(r.s) && r.s[r.pos] == c }

func (r *reader) next(c byte) bool {
	if r.at(c) {
		r.pos++
		return true
	}
	return false
}

func (r *reader) nextString(s string) bool {
	if strings.HasPrefix(r.s[r.pos:], s) {
		r.pos += len(s)
		return true
	}
	return false
}

func (r *reader) fail(code Code, message string) *Error {
	return &Error{Code: code, Offset: r.pos, Message: message}
}

func (r *reader) truncated() *Error {
	return &Error{Code: Truncated, Offset: len(r.s), Message: "the text ends inside an object: send all of it"}
}
