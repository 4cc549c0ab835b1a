package events

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxAskBytes bounds the id of a question or surface in its call. A longer name is cut and
// made unique by a hash.
const MaxAskBytes = 128

// MaxCallIDBytes bounds the tool_call_id of anything: it is a turn key, a qualifier, the id of a step
// ([StepID]) and the id of a question ([QuestionID]).
const MaxCallIDBytes = MaxIDBytes + len("@01234567#/") + MaxStepBytes + MaxAskBytes

// AskID returns the id of a question in its call: its name or, without one, its number n, from
// 1 on, in the order in which the call asks. Different names have different ids, and none
// equals the id of a number or a [SurfaceID]. It contains no '/': bytes that an id of the wire must
// not have are written %XX.
func AskID(name string, n int) string {
	if name == "" {
		return strconv.Itoa(n)
	}
	rest, s := strings.CutPrefix(name, "s")
	if numeral(name) || s && (numeral(rest) || strings.HasPrefix(rest, ":")) {
		return escapeAsk(escape(name[0]), name[1:])
	}
	return escapeAsk("", name)
}

// SurfaceID is [AskID] for what a call shows without asking: s1, s2, or s:<name>. Surfaces are
// numbered on their own.
func SurfaceID(name string, n int) string {
	if name == "" {
		return "s" + strconv.Itoa(n)
	}
	return escapeAsk("s:", name)
}

func numeral(s string) bool { return s != "" && digits(s) == len(s) }

// escapeAsk appends a name to what stands before it.
func escapeAsk(before, name string) string {
	var b strings.Builder
	b.WriteString(before)
	for i, r := range name {
		switch {
		case r == utf8.RuneError:
			_, size := utf8.DecodeRuneInString(name[i:])
			for _, c := range []byte(name[i : i+size]) {
				b.WriteString(escape(c))
			}
		case r == '/' || r == '%' || r == '#' || isDeceptive(r):
			for _, c := range []byte(string(r)) {
				b.WriteString(escape(c))
			}
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() <= MaxAskBytes {
		return b.String()
	}
	const hashChars = 22
	sum := sha256.Sum256([]byte(b.String()))
	end := MaxAskBytes - hashChars - len("%~")
	for !utf8.RuneStart(b.String()[end]) {
		end--
	}
	return b.String()[:end] + "%~" + base64.RawURLEncoding.EncodeToString(sum[:])[:hashChars]
}

func escape(c byte) string {
	const upperHex = "0123456789ABCDEF"
	return string([]byte{'%', upperHex[c>>4], upperHex[c&0xf]})
}

// QuestionID returns the tool_call_id of a question or surface: the id of its call, '/' and its
// [AskID] or [SurfaceID].
func QuestionID(callID, ask string) string { return callID + "/" + ask }

// ParseQuestionID is the inverse of [QuestionID]. It reports false for what cannot be the id of
// a question. The id of the call leads to the turn by [TurnOfCallID].
func ParseQuestionID(id string) (callID, ask string, ok bool) {
	at := strings.LastIndexByte(id, '/')
	if at <= 0 || at+1 == len(id) || len(id)-at-1 > MaxAskBytes || checkCallID("", id) != nil {
		return "", "", false
	}
	return id[:at], id[at+1:], true
}

// TurnOfCallID undoes [CallID] as far as callID allows: it returns the turn key, if callID belongs
// to a turn of this run. The call id of a turn without run id is its key, and any other text is
// returned unchanged: check the result with [CallID].
func TurnOfCallID(callID, run string) string { return turnOfCallID(callID, run) }
