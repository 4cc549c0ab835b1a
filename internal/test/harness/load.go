package harness

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// Load publishes turns at a steady rate, whatever happens to the server, and remembers what
// was acknowledged. A publish whose outcome is unknown is repeated until it is acknowledged:
// every turn that was begun is accepted in the end.
type Load struct {
	o    LoadOptions
	stop context.CancelFunc // of the beginning of turns
	wg   sync.WaitGroup
	open atomic.Int64

	mu       sync.Mutex
	accepted []oneturntest.Accepted
	repeats  int
}

// LoadOptions of a [Load]. Rate, Turn and Publish are required.
type LoadOptions struct {
	Rate int // turns a second
	// Turn makes the nth turn and returns what is expected of it.
	Turn func(n int) (*oneturn.Turn, oneturntest.Accepted)
	// Publish passes a turn to the inbound stream and returns nil once that is acknowledged.
	Publish func(ctx context.Context, t *oneturn.Turn) error
	// Wait bounds one publish. Defaults to 2 s.
	Wait time.Duration
	// Open bounds the turns that wait for their acknowledgement; beyond it the load pauses
	// and continues at its rate. Defaults to 512.
	Open int
}

// retryAfter is how long a load waits before it repeats a publish.
const retryAfter = 50 * time.Millisecond

// StartLoad begins to publish. ctx ends the load for good, also what is not acknowledged.
func StartLoad(ctx context.Context, o LoadOptions) *Load {
	if o.Wait <= 0 {
		o.Wait = 2 * time.Second
	}
	if o.Open <= 0 {
		o.Open = 512
	}
	l := &Load{o: o}
	beginning, stop := context.WithCancel(ctx)
	l.stop = stop
	l.wg.Go(func() { l.run(ctx, beginning.Done()) })
	return l
}

// run begins turns until stop; each is published under ctx.
func (l *Load) run(ctx context.Context, stop <-chan struct{}) {
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	room := make(chan struct{}, l.o.Open)
	begun, last, due := 0, time.Now(), 0.0
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		now := time.Now()
		due = min(due+now.Sub(last).Seconds()*float64(l.o.Rate), float64(l.o.Rate)) // no burst over a second's worth
		for last = now; due >= 1; due-- {
			select {
			case room <- struct{}{}:
			case <-stop:
				return
			}
			turn, accepted := l.o.Turn(begun)
			begun++
			accepted.Begun = now
			l.open.Add(1)
			l.wg.Go(func() {
				l.publish(ctx, turn, accepted)
				l.open.Add(-1)
				<-room
			})
		}
	}
}

func (l *Load) publish(ctx context.Context, turn *oneturn.Turn, accepted oneturntest.Accepted) {
	for repeats := 0; ; repeats++ {
		once, cancel := context.WithTimeout(ctx, l.o.Wait)
		err := l.o.Publish(once, turn)
		cancel()
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			accepted.At = time.Now()
			l.accepted = append(l.accepted, accepted)
			l.repeats += repeats
			return
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return
		}
	}
}

// Stop begins no more turns and waits until all that were begun are acknowledged. It returns
// how many are not when ctx ends first; such a turn may or may not run, so the run cannot be
// judged.
func (l *Load) Stop(ctx context.Context) (unknown int) {
	l.stop()
	done := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return int(l.open.Load())
}

// Accepted returns the turns that were acknowledged so far, in that order.
func (l *Load) Accepted() []oneturntest.Accepted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.accepted)
}

// Gap returns the longest time without an acknowledgement so far.
func (l *Load) Gap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	acks := make([]time.Time, len(l.accepted))
	for i, a := range l.accepted {
		acks[i] = a.At
	}
	return LongestGap(acks)
}

// Repeats returns how often a publish was repeated.
func (l *Load) Repeats() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.repeats
}

// LongestGap returns the longest time between two neighbours of a list of times in order.
func LongestGap(times []time.Time) (gap time.Duration) {
	for i := 1; i < len(times); i++ {
		gap = max(gap, times[i].Sub(times[i-1]))
	}
	return gap
}
