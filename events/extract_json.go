package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Agents write JSON into prose and fences. Candidates are tried from each opening bracket on, in order; each is
// read by the decoder of decode.go, so the result obeys the same limits as an inbound event. strip_reasoning.go
// removes reasoning first.

// MaxTextBytes bounds the text that [ExtractObject] reads.
const MaxTextBytes = 1 << 20

const opExtract = "extract object"

// ExtractObject returns the JSON object in what an agent wrote: the first one that is whole.
// Prose, fences, a leading "json" or a list around it do not matter, and a comma before a
// closing bracket is forgiven; the object itself must be what [Decode] accepts. Strings are
// never changed, and part of an object or list is never taken for the whole: text that ends
// inside one is an error, and so is an object that only other readers accept, such as one
// with NaN or a key twice. Braces that hold no JSON are prose, and so is reasoning in the marks of
// [WithoutReasoning], wherever it stands outside of the object.
//
// Every error is an [ErrBadArgs] that names the place in the text; it may wrap a *[SyntaxError],
// whose offset is relative to the text. The time is linear in the text.
func ExtractObject(text string) (map[string]any, error) {
	if len(text) > MaxTextBytes {
		return nil, extractError(fmt.Sprintf("the text has %d bytes: send at most %d", len(text), MaxTextBytes))
	}
	problem := extractError("the text holds no JSON object: send one in braces")
	longest, listed := 0, 0 // the part that the error is about; the end of the current list
	lower := lowerASCII(text)
	for at := answerStart(lower); at < len(text); at++ {
		switch end, closed := reasoningAt(lower, at); {
		case end > at && !closed:
			return nil, extractError(fmt.Sprintf("the text ends inside the reasoning that starts at byte %d: send the answer too", at))
		case end > at:
			at = end - 1
			continue
		}
		isList := at >= listed && opensList(text[at:])
		if !isList && text[at] != '{' {
			continue
		}
		end := closing(text, at)
		switch {
		case end < 0 && isList:
			return nil, extractError(fmt.Sprintf("the text ends inside the list that starts at byte %d: send all of it", at))
		case end < 0:
			return nil, extractError(fmt.Sprintf("the text ends inside the object that starts at byte %d: send all of it", at))
		case isList:
			listed = end
			continue
		}
		object, syntax, isJSON := decodeObject(text[at:end])
		if syntax == nil {
			return object, nil
		}
		if isJSON || end-at > longest {
			longest = end - at
			syntax.Offset += int64(at)
			problem = &Error{Code: CodeBadArgs, Op: opExtract, Msg: fmt.Sprintf("the object that starts at byte %d", at), Err: syntax}
		}
		if isJSON {
			break
		}
		at = end - 1
	}
	return nil, problem
}

func extractError(msg string) *Error { return &Error{Code: CodeBadArgs, Op: opExtract, Msg: msg} }

// opensList reports whether s starts a list of objects. Other brackets are prose: "[1]".
func opensList(s string) bool {
	return s[0] == '[' && strings.HasPrefix(strings.TrimLeft(s[1:], " \t\r\n"), "{")
}

// closing returns the offset after the bracket that closes the one at text[at], -1 if there
// is none. Brackets in strings do not count.
func closing(text string, at int) int {
	const toClosing = 2 // in ASCII, from [ to ] and from { to }
	open, depth := text[at], 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case open:
			depth++
		case open + toClosing:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// endOfString returns the offset of the quote that ends the string at s[at], len(s) if there
// is none.
func endOfString[T string | []byte](s T, at int) int {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(s)
}

// decodeObject decodes an object in braces. If that fails, isJSON reports whether other readers
// could decode it, so that the text does mean this object.
func decodeObject(part string) (object map[string]any, problem *SyntaxError, isJSON bool) {
	data := []byte(part)
	blankTrailingCommas(data)
	v, err := Decode(data)
	if errors.As(err, &problem) {
		rest := part[min(problem.Offset, int64(len(part))):]
		if inValue := problem.Pointer != ""; inValue && (strings.HasPrefix(rest, "NaN") || strings.HasPrefix(rest, "Infinity")) {
			problem.Reason = "NaN and infinity are not JSON: send null or leave the key out"
			return nil, problem, true
		}
		return nil, problem, json.Valid(data)
	}
	object, _ = v.(map[string]any) // it starts with a brace
	return object, nil, false
}

// blankTrailingCommas overwrites each comma before a closing bracket with a space, which keeps
// offsets as they are. Strings stay untouched.
func blankTrailingCommas(data []byte) {
	comma := -1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\r', '\n':
			continue
		case ',':
			comma = i
			continue
		case '}', ']':
			if comma >= 0 {
				data[comma] = ' '
			}
		case '"':
			i = endOfString(data, i)
		}
		comma = -1
	}
}
