package jsapi

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
)

// RateLimiter spreads steps over time: after every hundredth of a second's worth it waits for the
// clock to catch up, so that work in bulk leaves the server free for turns.
type RateLimiter struct {
	rate  int // steps a second, 0 = no limit
	batch int
	done  int
	start time.Time
}

// NewRateLimiter returns a limiter of so many steps a second, 0 for no limit.
func NewRateLimiter(rate int) *RateLimiter {
	return &RateLimiter{rate: rate, batch: max(rate/100, 1), start: time.Now()}
}

// Wait counts a step.
func (p *RateLimiter) Wait(ctx context.Context) error {
	p.done++
	if p.rate <= 0 || p.done%p.batch != 0 {
		return ctx.Err()
	}
	ahead := time.Duration(p.done)*time.Second/time.Duration(p.rate) - time.Since(p.start)
	if ahead <= 0 {
		return ctx.Err()
	}
	return pause.For(ctx, ahead)
}
