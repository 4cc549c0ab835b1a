package run

import (
	"context"
	"time"
)

// Timing is the clock of runs that wait for people. [Config] without one takes real time; a
// simulation has another one and decides which wait ends first.
type Timing interface {
	// AfterFunc calls f in a separate goroutine when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
	// Wait returns when notify has a value, over is closed, call or held has ended, or d has passed.
	// It reports whether only time has passed.
	Wait(call, held context.Context, notify, over <-chan struct{}, d time.Duration) (idle bool)
}

// Timer ends with a call of the function of [Timing.AfterFunc]. [time.Timer] implements it.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// realTime is the usual [Timing].
type realTime struct{}

// AfterFunc implements [Timing].
func (realTime) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Wait implements [Timing].
func (realTime) Wait(call, held context.Context, notify, over <-chan struct{}, d time.Duration) (idle bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-notify:
	case <-over:
	case <-call.Done():
	case <-held.Done():
	case <-t.C:
		return true
	}
	return false
}

// closed reports whether a channel that is only ever closed has been.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
