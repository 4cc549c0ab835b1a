package limits

import (
	"container/list"
	"context"
	"time"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// lane is where the calls of this worker wait for their places in one rate. The places are taken
// in advance; the first call takes the first. A call that goes leaves its place to those behind it,
// so nobody's place ever gets later.
type lane struct {
	scope   scope
	rate    target.Rate // as the last call that came has it
	waiting list.List   // of *waiter, in the order in which they came
	places  []time.Time // that are this worker's, in order; perhaps more than calls wait
	booking bool        // places are being taken, or given back
	timer   *time.Timer
	due     time.Time // when the timer fires
}

// waiter is a call in a lane.
type waiter struct {
	decided chan error
	at      *list.Element // nil once it is decided
	latest  time.Time     // it does not want a later place
}

// place waits until a call may begin. An error is the cause of ctx, or the place would be too late.
func (l *Limiter) place(ctx context.Context, s scope, rate target.Rate) error {
	if err := rate.Check(); err != nil {
		return again(0, "%v", err)
	}
	w := &waiter{decided: make(chan error, 1), latest: time.Now().Add(MaxWait)}
	if end, ok := ctx.Deadline(); ok && end.Before(w.latest) {
		w.latest = end
	}
	ln, err := l.join(s, rate, w)
	if err != nil {
		return err
	}
	select {
	case err := <-w.decided:
		return err
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.at == nil { // its place has just come
		return <-w.decided
	}
	ln.waiting.Remove(w.at)
	w.at = nil
	l.turn(ln)
	return context.Cause(ctx)
}

// join puts a call at the end of its lane.
func (l *Limiter) join(s scope, rate target.Rate, w *waiter) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	ln := l.lanes[s]
	if ln == nil {
		ln = &lane{scope: s}
		l.lanes[s] = ln
	}
	ln.rate = rate
	if ln.waiting.Len() >= MaxWaiting {
		return nil, crowded(s)
	}
	if n := ln.waiting.Len(); n < len(ln.places) && ln.places[n].After(w.latest) {
		return nil, ln.late(ln.places[n])
	}
	w.at = ln.waiting.PushBack(w)
	l.turn(ln)
	return ln, nil
}

// turn lets begin whose place has come, sees to it that places are taken for those without one and
// given back where nobody wants them, and forgets a lane that nobody needs.
func (l *Limiter) turn(ln *lane) {
	now := time.Now()
	for len(ln.places) > 0 && !ln.places[0].After(now) {
		ln.places = ln.places[1:]
		if first := ln.first(); first != nil {
			ln.decide(first, nil)
		}
	}
	if len(ln.places) > 0 {
		ln.wake(ln.places[0], func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.closed {
				l.turn(ln)
			}
		})
	}
	if ln.waiting.Len() != len(ln.places) && !ln.booking && !l.closed {
		ln.booking = true
		l.work.Go(func() { l.book(ln) })
	}
	if ln.waiting.Len() == 0 && len(ln.places) == 0 && !ln.booking && l.lanes[ln.scope] == ln {
		ln.stop()
		delete(l.lanes, ln.scope)
	}
}

// wake has f called at a time, instead of at the one that was asked for before.
func (ln *lane) wake(at time.Time, f func()) {
	switch {
	case ln.timer == nil:
		ln.timer = time.AfterFunc(time.Until(at), f)
	case !ln.due.Equal(at):
		ln.timer.Reset(time.Until(at))
	}
	ln.due = at
}

func (ln *lane) stop() {
	if ln.timer != nil {
		ln.timer.Stop()
	}
}

func (ln *lane) first() *waiter {
	front := ln.waiting.Front()
	if front == nil {
		return nil
	}
	w, _ := front.Value.(*waiter)
	return w
}

// decide ends the wait of a call, if it waits.
func (ln *lane) decide(w *waiter, err error) {
	if w.at == nil {
		return
	}
	ln.waiting.Remove(w.at)
	w.at = nil
	w.decided <- err
}

// without returns the first calls that have no place, at most so many.
func (ln *lane) without(most int) []*waiter {
	lacking := ln.waiting.Len() - len(ln.places)
	if lacking <= 0 {
		return nil
	}
	e := ln.waiting.Back()
	for range lacking - 1 {
		e = e.Prev()
	}
	calls := make([]*waiter, 0, min(lacking, most))
	for ; e != nil && len(calls) < most; e = e.Next() {
		if w, ok := e.Value.(*waiter); ok {
			calls = append(calls, w)
		}
	}
	return calls
}

// add adds a place behind those that there are.
func (ln *lane) add(at time.Time) {
	if n := len(ln.places); n > 0 && at.Before(ln.places[n-1]) {
		at = ln.places[n-1]
	}
	ln.places = append(ln.places, at)
}

// surplus takes the places that nobody wants out of the lane: the last ones.
func (ln *lane) surplus() int {
	n := max(len(ln.places)-ln.waiting.Len(), 0)
	ln.places = ln.places[:len(ln.places)-n]
	return n
}

// late is the end of a call whose place would come too late.
func (ln *lane) late(at time.Time) error {
	wait := max(time.Until(at), time.Millisecond).Round(time.Millisecond)
	return again(wait, "rate limit of %s: %d calls in %s may begin; this one could in %s, which is later than it waits: try again then",
		ln.scope, ln.rate.Calls, ln.rate.Per, wait)
}
