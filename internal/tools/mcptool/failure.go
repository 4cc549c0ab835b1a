package mcptool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// maxText bounds the text of an error of a server, in bytes.
const maxText = 1024

// unknown ends an error when the effect of the call is not known.
const unknown = "its effect may or may not have happened"

func failf(code events.Code, op, format string, args ...any) error {
	return &events.Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// ended describes a call whose context ended.
func ended(ctx context.Context, op, when string) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, tools.ErrParked):
		return fmt.Errorf("%s: %w", op, tools.ErrParked)
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(cause, events.ErrTimeout):
		return &events.Error{Code: events.CodeTimeout, Op: op, Msg: "timeout " + when, Err: ctx.Err()}
	}
	return &events.Error{Code: events.CodeCancelled, Op: op, Msg: "cancelled " + when, Err: ctx.Err()}
}

// bounded makes a text of a server usable in an error: valid, on one line, and not long.
func bounded(text string) string {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return strings.Join(strings.FieldsFunc(cut(text, maxText), control), " ")
}

// cut returns the beginning of a text, as valid UTF-8.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
