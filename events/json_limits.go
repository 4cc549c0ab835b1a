package events

import (
	"fmt"
	"strings"
)

// Limits of [Decode]. A document beyond them is refused, whatever it means.
const (
	MaxDepth       = 64      // arrays and objects inside each other
	MaxNodes       = 100_000 // values in one document
	MaxNumberChars = 64      // characters of one number literal
	MaxExponent    = 308     // largest |exponent| as written
)

// eventNodes is how many values an event has at most around the data or result in it. Whatever
// goes into an event stays that much below [MaxNodes], so that the event can be read.
const eventNodes = 100

// MaxDataNodes is how many values the data in an event may have.
const MaxDataNodes = MaxNodes - eventNodes

// Extent returns how deep the lists and objects of a value tree are inside each other, and how many values it has.
func Extent(v any) (depth, nodes int) {
	below := 0
	inside := func(v any) {
		d, n := Extent(v)
		below, nodes = max(below, d), nodes+n
	}
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			inside(element)
		}
	case map[string]any:
		for _, value := range v {
			inside(value)
		}
	default:
		return 0, 1
	}
	return below + 1, nodes + 1
}

// SyntaxError is the reason why a document is not JSON that oneturn accepts, and the place. It
// contains key names of the document, but none of its values.
type SyntaxError struct {
	Offset  int64  // byte offset of the offending byte
	Pointer string // RFC 6901 pointer to the value around it, cut at 1 KiB; "" is the whole document
	Reason  string // what was wrong and what is expected
}

// Error implements error.
func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("invalid JSON at byte %d, %.200q: %s", e.Offset, e.Pointer, e.Reason)
}

// maxPointer bounds a pointer in bytes: keys may be nearly as long as the document, and there
// are up to [MaxDepth] of them above each other.
const maxPointer = 1024

// under puts a key or index before the pointer, on the way back to the root: the way to a
// value costs nothing until something is wrong.
func (e *SyntaxError) under(segment string) *SyntaxError {
	segment = segment[:min(len(segment), maxPointer)]
	segment = strings.ReplaceAll(segment, "~", "~0")
	segment = strings.ReplaceAll(segment, "/", "~1")
	e.Pointer = "/" + segment + e.Pointer
	e.Pointer = e.Pointer[:min(len(e.Pointer), maxPointer)]
	return e
}
