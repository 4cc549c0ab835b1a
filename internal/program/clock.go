package program

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
)

// Clock is the time that a program may take, as a context that ends with it. It stands still while the program waits for people.
type Clock struct {
	context.Context //nolint:containedctx // a clock is a context with an end that can be put off

	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer
	left   time.Duration
	since  time.Time
	paused time.Duration
	stands bool
	over   bool
}

// NewClock returns a clock that has begun.
func NewClock(ctx context.Context, limit time.Duration) *Clock {
	c := &Clock{left: limit, since: time.Now()}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(limit, func() {
		c.cancel(&events.Error{Code: events.CodeTimeout, Op: "program", Msg: "the program took longer than " + limit.String()})
	})
	return c
}

// Pause stops the clock, or starts it again.
func (c *Clock) Pause(stands bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.stands == stands {
		return
	}
	now := time.Now()
	c.stands = stands
	if stands {
		c.timer.Stop()
		c.left -= now.Sub(c.since)
	} else {
		c.paused += now.Sub(c.since)
		c.timer.Reset(max(c.left, 0))
	}
	c.since = now
}

// Paused returns how long the clock has stood still.
func (c *Clock) Paused() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// End ends the clock and its context.
func (c *Clock) End() {
	c.mu.Lock()
	c.over = true
	c.timer.Stop()
	c.mu.Unlock()
	c.cancel(nil)
}
