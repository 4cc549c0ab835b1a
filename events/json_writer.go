package events

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// The writer of events appends names and values to one buffer, without a tree or a second pass. Members are
// written in a fixed order; the last call adds the time stamp and closes the envelope.

// writer appends an event member by member and keeps the first error, so that an encoder
// reads as the list of its members. Names of members are plain ASCII.
type writer struct {
	b     []byte
	depth int // open objects
	err   error
}

// newWriter opens the envelope of an event at the end of dst, with room for so many bytes of
// values next to the names and ids.
func newWriter(dst []byte, kind string, room int) writer {
	const names = 1024
	w := writer{b: append(slices.Grow(dst, names+room), '{'), depth: 1}
	w.str("type", TypeOf(kind))
	return w
}

// finish writes the timestamp and closes the envelope.
func (w *writer) finish(now time.Time) ([]byte, error) {
	w.time("timestamp", now)
	w.close()
	if w.err != nil {
		return nil, w.err
	}
	return w.b, nil
}

func (w *writer) name(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) open(name string) {
	if w.err == nil {
		w.name(name)
		w.b = append(w.b, '{')
	}
	w.depth++
}

func (w *writer) close() {
	if w.err == nil {
		w.b = append(w.b, '}')
	}
	w.depth--
}

func (w *writer) str(name, s string) {
	if w.err == nil {
		w.name(name)
		w.keep(appendString(w.b, s))
	}
}

func (w *writer) optional(name, s string) {
	if s != "" {
		w.str(name, s)
	}
}

func (w *writer) boolean(name string, v bool) {
	if w.err == nil {
		w.name(name)
		w.b = strconv.AppendBool(w.b, v)
	}
}

func (w *writer) integer(name string, v int64) {
	if w.err == nil {
		w.name(name)
		w.b = strconv.AppendInt(w.b, v, 10)
	}
}

func (w *writer) optionalInt(name string, v int64) {
	if v != 0 {
		w.integer(name, v)
	}
}

func (w *writer) time(name string, t time.Time) {
	if w.err == nil {
		w.name(name)
		w.b = append(w.b, '"')
		w.b = t.UTC().AppendFormat(w.b, timeFormat)
		w.b = append(w.b, '"')
	}
}

// sizeOf returns the size of a value that is JSON already, 0 for any other.
func sizeOf(v any) int {
	switch v := v.(type) {
	case Canonical:
		return len(v)
	case json.RawMessage:
		return len(v)
	default:
		return 0
	}
}

// value writes a value tree, or one of the structs that stand for a payload.
func (w *writer) value(name string, v any) {
	if w.err != nil {
		return
	}
	switch payload := v.(type) {
	case Blob, *Blob, ValidationFailure, *ValidationFailure:
		v = w.objectOf(payload)
	default:
	}
	if w.err == nil {
		w.name(name)
		w.keep(appendValue(w.b, v, w.depth))
	}
}

func (w *writer) keep(b []byte, err error) {
	if err != nil {
		w.fail(err)
		return
	}
	w.b = b
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
