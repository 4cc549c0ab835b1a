package mcptool

import (
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// maxText bounds the text of an error of a server, in bytes.
const maxText = 1024

// unknown ends an error when the effect of the call is not known.
const unknown = "its effect may or may not have happened"

func failf(code events.Code, op, format string, args ...any) error {
	return &events.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// bounded makes a text of a server usable in an error: valid, on one line, and not long.
func bounded(text string) string {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return strings.Join(strings.FieldsFunc(cut(text, maxText), control), " ")
}

// cut returns the beginning of a text, as valid UTF-8.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
