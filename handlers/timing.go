package handlers

import (
	"context"
	"time"
)

// Timing is how runs that wait for people see time pass. [Config] without one takes real time; a
// simulation brings its own and decides which wait ends first.
type Timing interface {
	// AfterFunc calls f in a separate goroutine when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
	// Wait returns when wake has a value, over is closed, call or held has ended, or d has passed.
	// It reports whether nothing but time has passed.
	Wait(call, held context.Context, wake, over <-chan struct{}, d time.Duration) (idle bool)
}

// Timer is a call of [Timing.AfterFunc] that is due. [time.Timer] is the real one.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// realTime is the usual [Timing].
type realTime struct{}

// AfterFunc implements [Timing].
func (realTime) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// Wait implements [Timing].
func (realTime) Wait(call, held context.Context, wake, over <-chan struct{}, d time.Duration) (idle bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-wake:
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
