package run

import (
	"context"
	"sync"
	"time"
)

// Timing is the clock of runs that wait for people, and of what waits for other goroutines of a turn. [Config] without one takes
// real time; a simulation has another one and decides which wait ends first.
type Timing interface {
	// AfterFunc calls f in a separate goroutine when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
	// Wait returns when notify has a value, over is closed, call or held has ended, or d has passed.
	// It reports whether only time has passed.
	Wait(call, held context.Context, notify, over <-chan struct{}, d time.Duration) (idle bool)
	// Go calls f in a separate goroutine that group waits for: a step of a program.
	Go(group *sync.WaitGroup, f func())
	// Await is called before a wait that ends when ready reports true.
	Await(ready func() bool)
	// Lock locks gate for writing.
	Lock(gate *sync.RWMutex)
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

// Go implements [Timing].
func (realTime) Go(group *sync.WaitGroup, f func()) { group.Go(f) }

// Await implements [Timing].
func (realTime) Await(func() bool) {}

// Lock implements [Timing].
func (realTime) Lock(gate *sync.RWMutex) { gate.Lock() }

// closed reports whether a channel that is only ever closed has been.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
