// Package presence decides whether a stream or consumer that a worker relies on is gone for good.
//
// A worker never creates one: a new one lacks the records of the old. One check that does not find it
// proves nothing, since a cluster that has just started or is electing a leader may deny for a moment
// what it is about to find. Two checks at least a second apart do. [Watch] is that rule (presence.go);
// its owner does the checks. [Stream] checks by itself (stream.go).
package presence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Again is the least time between the two checks that find nothing.
const Again = time.Second

// Fixes that the error of a [Watch] names.
const (
	FixMissing   = "restore it from a backup, or run `turnctl provision`"
	FixRecreated = "start the worker again"
)

// Watch remembers what looks at one stream or consumer have found. It is safe for concurrent use.
type Watch struct {
	what  string // "bucket X"
	kind  error  // that the error wraps
	start time.Time

	created atomic.Int64 // Unix nanoseconds by the server, 0 before the first check
	missing atomic.Int64 // nanoseconds from start to the first check that found nothing, 0 if the last one found it

	lost sync.Once
	gone chan struct{} // closed once it is
	why  error         // set before gone is closed
}

// New returns the watch of an object. Its error begins with what and wraps kind.
func New(what string, kind error) *Watch {
	return &Watch{what: what, kind: kind, start: time.Now(), gone: make(chan struct{})}
}

// Missing records a check that has not found the object. It returns the error of the watch, which is not
// nil from the second such check if a second has passed and none has found it in between.
func (w *Watch) Missing(fix string) error {
	now := int64(time.Since(w.start)) + 1
	if !w.missing.CompareAndSwap(0, now) && now-w.missing.Load() >= int64(Again) {
		return w.Lose("it does not exist any more", fix)
	}
	return w.Err()
}

// Found records a check that has found an object, created at a time by the server's clock: one of
// the same name that was created at another time than the first is another one. The zero time
// compares nothing.
func (w *Watch) Found(created time.Time, fix string) error {
	w.missing.Store(0)
	if created.IsZero() {
		return w.Err()
	}
	if at := created.UnixNano(); !w.created.CompareAndSwap(0, at) && w.created.Load() != at {
		return w.Lose("it was re-created at "+created.Format(time.RFC3339), fix)
	}
	return w.Err()
}

// Lose remembers for good that the object is gone, and why.
func (w *Watch) Lose(why, fix string) error {
	w.lost.Do(func() {
		w.why = fmt.Errorf("%s: %s: %w: %s", w.what, why, w.kind, fix)
		close(w.gone)
	})
	return w.why
}

// Known reports whether a check has found the object before.
func (w *Watch) Known() bool { return w.created.Load() != 0 }

// MaybeGone reports whether the last check has not found it: the next one, a second later, decides.
func (w *Watch) MaybeGone() bool { return w.missing.Load() != 0 }

// Gone is closed once the object is gone for good.
func (w *Watch) Gone() <-chan struct{} { return w.gone }

// Err is nil, or why the object is gone for good.
func (w *Watch) Err() error {
	select {
	case <-w.gone:
		return w.why
	default:
		return nil
	}
}
