// Package pause waits for a time or for the end of a context.
package pause

import (
	"context"
	"time"
)

// For waits until d has passed, and returns nil, or until ctx ends, and returns its cause.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
