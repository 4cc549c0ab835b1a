package engine

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Clock is the time that one attempt may take. It is paused while the call waits for a person, so that
// an answer may take days where a tool may take seconds. It is the context of the attempt as well. Its methods
// are safe for concurrent use.
type Clock struct {
	context.Context //nolint:containedctx // a clock is a context with an end that can be put off

	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer   // nil before the call is entered
	left   time.Duration // when it was started last
	since  time.Time     // when it was started, or stopped, last
	stops  int           // how often it is stopped
	paused time.Duration // how long it was paused
	early  time.Duration // of that, before it was started
	over   bool
}

func newClock(ctx context.Context, timeout time.Duration) *Clock {
	c := &Clock{left: timeout}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	return c
}

// Value implements [context.Context]: it is the [tools.Ender] of the attempt as well.
func (c *Clock) Value(key any) any {
	if key == (tools.EndKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// End implements [tools.Ender]. The time of the attempt is not known while it stands still.
func (c *Clock) End() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil || c.stops > 0 {
		return time.Time{}, false
	}
	return c.since.Add(c.left), true
}

// Stop makes the clock stand still until [Clock.Go] has been called as often as Stop.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops++
	if c.stops > 1 {
		return
	}
	now := time.Now()
	if c.timer != nil {
		c.timer.Stop()
		c.left -= now.Sub(c.since)
	}
	c.since = now
}

// Go takes one [Clock.Stop] back.
func (c *Clock) Go() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops--
	if c.stops > 0 {
		return
	}
	c.addPause()
	if c.timer != nil && !c.over {
		c.timer.Reset(max(c.left, 0))
	}
}

// addPause counts how long the clock was paused by now.
func (c *Clock) addPause() {
	now := time.Now()
	paused := now.Sub(c.since)
	c.paused, c.since = c.paused+paused, now
	if c.timer == nil {
		c.early += paused
	}
}

// start begins to count: the call is entered.
func (c *Clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stops > 0 {
		c.addPause()
	}
	c.timer = time.AfterFunc(c.left, func() { c.cancel(events.ErrTimeout) })
	if c.stops > 0 {
		c.timer.Stop()
		return
	}
	c.since = time.Now()
}

// end ends the attempt and its context, and returns how long the clock was paused, and how long of
// that before it was started.
func (c *Clock) end() (paused, early time.Duration) {
	c.mu.Lock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.stops > 0 {
		c.addPause()
	}
	paused, early = c.paused, c.early
	c.mu.Unlock()
	c.cancel(nil)
	return paused, early
}
