package limits

import (
	"container/list"
	"context"
	"time"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// rateQueue is where the calls of this worker wait for their places in one rate. The places are taken
// in advance; the first call takes the first. A call that leaves passes its place to the calls after it,
// so no place ever gets later.
type rateQueue struct {
	scope     scope
	rate      target.Rate // as the last call that came has it
	waiting   list.List   // of *waiter, in the order in which they came
	places    []time.Time // that are this worker's, in order; perhaps more than calls wait
	reserving bool        // places are being taken or released
	timer     *time.Timer
	fireAt    time.Time // when the timer fires
}

// waiter is a call in a queue.
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
	q, err := l.join(s, rate, w)
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
	q.waiting.Remove(w.at)
	w.at = nil
	l.turn(q)
	return context.Cause(ctx)
}

// join puts a call at the end of its queue.
func (l *Limiter) join(s scope, rate target.Rate, w *waiter) (*rateQueue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	q := l.queues[s]
	if q == nil {
		q = &rateQueue{scope: s}
		l.queues[s] = q
	}
	q.rate = rate
	if q.waiting.Len() >= MaxWaiting {
		return nil, errTooManyWaiting(s)
	}
	if n := q.waiting.Len(); n < len(q.places) && q.places[n].After(w.latest) {
		return nil, q.errTooLate(q.places[n])
	}
	w.at = q.waiting.PushBack(w)
	l.turn(q)
	return q, nil
}

// turn lets the calls begin whose place has come, has places taken for calls without one and unused ones
// released, and forgets a queue without calls.
func (l *Limiter) turn(q *rateQueue) {
	now := time.Now()
	for len(q.places) > 0 && !q.places[0].After(now) {
		q.places = q.places[1:]
		if first := q.first(); first != nil {
			q.decide(first, nil)
		}
	}
	if len(q.places) > 0 {
		q.wake(q.places[0], func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.closed {
				l.turn(q)
			}
		})
	}
	if q.waiting.Len() != len(q.places) && !q.reserving && !l.closed {
		q.reserving = true
		l.work.Go(func() { l.reserve(q) })
	}
	if q.waiting.Len() == 0 && len(q.places) == 0 && !q.reserving && l.queues[q.scope] == q {
		q.stop()
		delete(l.queues, q.scope)
	}
}

// wake has f called at a time, instead of at the one that was asked for before.
func (q *rateQueue) wake(at time.Time, f func()) {
	switch {
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Until(at), f)
	case !q.fireAt.Equal(at):
		q.timer.Reset(time.Until(at))
	}
	q.fireAt = at
}

func (q *rateQueue) stop() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

func (q *rateQueue) first() *waiter {
	front := q.waiting.Front()
	if front == nil {
		return nil
	}
	w, _ := front.Value.(*waiter)
	return w
}

// decide ends the wait of a call, if it waits.
func (q *rateQueue) decide(w *waiter, err error) {
	if w.at == nil {
		return
	}
	q.waiting.Remove(w.at)
	w.at = nil
	w.decided <- err
}

// without returns the first calls that have no place, at most so many.
func (q *rateQueue) without(most int) []*waiter {
	lacking := q.waiting.Len() - len(q.places)
	if lacking <= 0 {
		return nil
	}
	e := q.waiting.Back()
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

// add adds a place at the end.
func (q *rateQueue) add(at time.Time) {
	if n := len(q.places); n > 0 && at.Before(q.places[n-1]) {
		at = q.places[n-1]
	}
	q.places = append(q.places, at)
}

// surplus takes the unused places out of the queue: the last ones.
func (q *rateQueue) surplus() int {
	n := max(len(q.places)-q.waiting.Len(), 0)
	q.places = q.places[:len(q.places)-n]
	return n
}

// late is the end of a call whose place would come too late.
func (q *rateQueue) errTooLate(at time.Time) error {
	wait := max(time.Until(at), time.Millisecond).Round(time.Millisecond)
	return again(wait, "rate limit of %s: %d calls in %s may begin; this one could in %s, which is later than it waits: try again then",
		q.scope, q.rate.Calls, q.rate.Per, wait)
}
