package limits

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// How places are taken.
const (
	maxBatch = 256                  // by one write
	pace     = 2 * time.Millisecond // between two writes for one rate: what comes in between goes together
	maxTries = 16                   // writes in a row that somebody else was faster than
	tryPause = time.Millisecond     // before the second, twice as long before each more
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second // while the store does not answer
	timeout  = 5 * time.Second // of one request
	sayAgain = time.Minute     // that the store does not answer
)

// state is what is known of a rate in the store.
type state struct {
	until    time.Time // by the clock of this worker
	revision uint64
	ours     bool // this worker has written it
}

// book takes places for the calls of a lane that have none, and gives back those that nobody wants,
// until neither is left.
func (l *Limiter) book(ln *lane) {
	pause := minPause
	for {
		l.mu.Lock()
		rate, calls, surplus := ln.rate, ln.without(maxBatch), 0
		if len(calls) == 0 {
			surplus = ln.surplus()
		}
		if len(calls) == 0 && surplus == 0 || l.closed {
			ln.booking = false
			l.turn(ln)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if len(calls) == 0 {
			l.giveBack(ln.scope, rate, surplus)
			continue
		}
		latest := make([]time.Time, len(calls))
		for i, w := range calls {
			latest[i] = w.latest
		}
		offers, err := l.take(ln.scope, rate, latest)
		l.settle(ln, calls, offers, err)
		if err == nil {
			pause = minPause
			l.rest(pace)
			continue
		}
		l.rest(pause/2 + rand.N(pause/2))
		pause = min(2*pause, maxPause)
	}
}

// settle hands the places on. Without an answer of the store the calls wait on.
func (l *Limiter) settle(ln *lane, calls []*waiter, offers []offer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrMissing):
		for _, w := range calls {
			ln.decide(w, again(0, "rate limit of %s: %v", ln.scope, err))
		}
	case errors.Is(err, ErrTaken): // others are faster; it is tried again
	case err != nil:
		if now := time.Now(); l.log != nil && !l.closed && now.Sub(l.said) >= sayAgain {
			l.said = now
			l.log.Warn("the bucket of rates does not answer; calls of tools with a rate limit wait for it", "err", err)
		}
	default:
		for i, o := range offers {
			if o.taken {
				ln.add(o.at)
			} else {
				ln.decide(calls[i], ln.late(o.at))
			}
		}
		l.turn(ln)
	}
}

// take takes places in the store. A place that was refused is the one that there would have been.
func (l *Limiter) take(s scope, rate target.Rate, latest []time.Time) ([]offer, error) {
	key := subjects.LimitKey(s.tool, s.tenant, s.all)
	clock, err := l.synchronised()
	if err != nil {
		return nil, err
	}
	known, remembered := l.remembered(s)
	for try := range maxTries {
		if !remembered {
			if known, err = l.load(key, clock); err != nil {
				return nil, err
			}
		}
		offers, until := plan(rate, known.until, time.Now(), latest)
		if !anyTaken(offers) {
			if remembered {
				remembered = false // somebody may have given places back since: look
				continue
			}
			l.remember(s, known)
			return offers, nil
		}
		revision, err := l.save(key, clock.ToServer(until), known.revision)
		if err == nil {
			l.remember(s, state{until, revision, true})
			return apart(offers, time.Now()), nil
		}
		if !errors.Is(err, ErrTaken) {
			l.forget(s)
			return nil, err
		}
		remembered = false
		l.rest(rand.N(tryPause << min(try, 6)))
	}
	l.forget(s)
	return nil, ErrTaken
}

// apart moves places that came while the store took its time to answer, all by the same time, so
// that their calls do not begin at once.
func apart(offers []offer, now time.Time) []offer {
	for i := range offers {
		if !offers[i].taken {
			continue
		}
		late := now.Sub(offers[i].at)
		for j := i; late > 0 && j < len(offers); j++ {
			offers[j].at = offers[j].at.Add(late)
		}
		break
	}
	return offers
}

func anyTaken(offers []offer) bool {
	for _, o := range offers {
		if o.taken {
			return true
		}
	}
	return false
}

// giveBack makes the last n places free again, if nobody has taken places behind them. If that
// fails they lapse.
func (l *Limiter) giveBack(s scope, rate target.Rate, n int) {
	known, ok := l.remembered(s)
	clock, err := l.synchronised()
	if !ok || !known.ours || err != nil {
		return
	}
	until := known.until.Add(-rate.Interval() * time.Duration(n))
	revision, err := l.save(subjects.LimitKey(s.tool, s.tenant, s.all), clock.ToServer(until), known.revision)
	if err != nil {
		l.forget(s)
		return
	}
	l.remember(s, state{until, revision, true})
}

func (l *Limiter) load(key string, clock serverclock.Reading) (state, error) {
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	until, revision, err := l.store.Load(ctx, key)
	if err != nil {
		return state{}, err
	}
	return state{until: clock.ToProcess(until), revision: revision}, nil
}

func (l *Limiter) save(key string, until time.Time, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	return l.store.Save(ctx, key, until, revision)
}

func (l *Limiter) remembered(s scope) (state, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.Get(s)
}

func (l *Limiter) remember(s scope, known state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Add(s, known)
}

func (l *Limiter) forget(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Remove(s)
}

// rest waits, unless the limiter is closed.
func (l *Limiter) rest(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}
