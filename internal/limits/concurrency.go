package limits

import (
	"container/list"
	"context"
)

// gate limits how many calls run at the same time in this worker.
type gate struct {
	most    int // as the last call that came has it
	running int
	waiting list.List // of *caller, in the order in which they came
}

// caller waits before a gate.
type caller struct {
	enters chan struct{} // closed when it may
	at     *list.Element // nil when it may
}

// enter waits until one of most calls may run. An error is the cause of ctx, or too many
// calls wait.
func (l *Limiter) enter(ctx context.Context, s scope, most int) error {
	l.mu.Lock()
	g := l.gates[s]
	if g == nil {
		g = &gate{}
		l.gates[s] = g
	}
	g.most = most
	if g.running < most && g.waiting.Len() == 0 {
		g.running++
		l.mu.Unlock()
		return nil
	}
	if g.waiting.Len() >= MaxWaiting {
		l.mu.Unlock()
		return errTooManyWaiting(s)
	}
	c := &caller{enters: make(chan struct{})}
	c.at = g.waiting.PushBack(c)
	l.next(s, g) // the limit may have been raised
	l.mu.Unlock()

	var err error
	select {
	case <-c.enters:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-l.ctx.Done():
		err = errClosed()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.at == nil { // it may just now
		g.running--
	} else {
		g.waiting.Remove(c.at)
	}
	l.next(s, g)
	return err
}

// leave undoes enter.
func (l *Limiter) leave(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gates[s]; g != nil {
		g.running--
		l.next(s, g)
	}
}

// next lets the first call in, and forgets a gate without calls.
func (l *Limiter) next(s scope, g *gate) {
	for g.running < g.most && g.waiting.Len() > 0 {
		first := g.waiting.Front()
		g.waiting.Remove(first)
		if c, ok := first.Value.(*caller); ok {
			c.at = nil
			g.running++
			close(c.enters)
		}
	}
	if g.running == 0 && g.waiting.Len() == 0 {
		delete(l.gates, s)
	}
}
