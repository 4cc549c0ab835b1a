package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// EndKey is the key of the [Ender] in the context of an attempt.
type EndKey struct{}

// Ender returns when an attempt ends as of now: each question to a person extends it.
type Ender interface {
	End() (time.Time, bool)
}

// End returns when the attempt of ctx ends unless a question extends it, and whether it has an end. ctx has no
// deadline of this time, because a context that was derived from it would keep that deadline when it is extended.
func End(ctx context.Context) (time.Time, bool) {
	if e, ok := ctx.Value(EndKey{}).(Ender); ok {
		end, ends := e.End()
		if last, ok := ctx.Deadline(); ok && (!ends || last.Before(end)) {
			return last, true
		}
		return end, ends
	}
	return ctx.Deadline()
}

// ProtocolError is the cause of the context of a call whose tool violated the protocol of its host, or whose host
// failed: the call ends with Err.
type ProtocolError struct{ Err error }

// Error implements error.
func (e *ProtocolError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ProtocolError) Unwrap() error { return e.Err }

// Ended is the error of a call whose context has ended, by the cause: [ErrParked] as it is, the Err of a
// [ProtocolError], else code timeout or cancelled. Op is the operation, when what was under way.
func Ended(ctx context.Context, op, when string) error {
	cause := context.Cause(ctx)
	var broken *ProtocolError
	switch {
	case errors.As(cause, &broken):
		return broken.Err
	case errors.Is(cause, ErrParked):
		return fmt.Errorf("%s: %w", op, ErrParked)
	case TimedOut(ctx):
		return &events.Error{Code: events.CodeTimeout, Op: op, Msg: "timeout " + when, Err: ctx.Err()}
	}
	return &events.Error{Code: events.CodeCancelled, Op: op, Msg: "cancelled " + when, Err: ctx.Err()}
}

// TimedOut reports whether a context has ended because its time was over, and not for another cause.
func TimedOut(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, events.ErrTimeout)
}
