package limits

import (
	"context"
	"time"
)

// clock turns times of this worker into times of the store, so that workers whose clocks differ
// mean the same. The zero value was never set.
type clock struct{ worker, store time.Time }

func (c clock) ofStore(t time.Time) time.Time  { return c.store.Add(t.Sub(c.worker)) }
func (c clock) ofWorker(t time.Time) time.Time { return c.worker.Add(t.Sub(c.store)) }

// synchronised returns the clock, set anew if that was long ago.
func (l *Limiter) synchronised() (clock, error) {
	l.mu.Lock()
	c := l.clock
	l.mu.Unlock()
	begin := time.Now()
	if !c.worker.IsZero() && begin.Sub(c.worker) < syncAgain {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	store, err := l.store.Now(ctx)
	if err != nil {
		return clock{}, err
	}
	c = clock{worker: begin.Add(time.Since(begin) / 2), store: store}
	l.mu.Lock()
	l.clock = c
	l.mu.Unlock()
	return c, nil
}
