package tools

import (
	"context"
	"time"
)

// EndKey is the key of the context value that knows when an attempt ends, an [Ender].
type EndKey struct{}

// Ender knows when an attempt ends, as far as that is known now: questions to people put it off.
type Ender interface {
	End() (time.Time, bool)
}

// End returns when the attempt of ctx ends unless a question puts it off, and whether it ends at
// all. The context itself has no such deadline: contexts made from it with a later
// deadline would take it for the earlier one for good, and never end.
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
