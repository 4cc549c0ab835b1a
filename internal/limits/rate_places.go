package limits

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// One goroutine for each queue takes places of its rate (reserve): it asks for as many as calls wait, by one
// compare-and-set (take), passes them to the calls (settle), and returns those that no call needs any more (release).

// How places are taken.
const (
	maxBatch      = 256                  // by one write
	writeInterval = 2 * time.Millisecond // between two writes for one rate: what comes in between goes together
	maxTries      = 16                   // writes in a row that another worker was faster than
	tryPause      = time.Millisecond     // before the second, twice as long before each more
	minPause      = 100 * time.Millisecond
	maxPause      = 2 * time.Second // while the store does not answer
	timeout       = 5 * time.Second // of one request
	logInterval   = time.Minute     // of the line that the store does not answer
)

// state is what is known of a rate in the store.
type state struct {
	until    time.Time // by the clock of this worker
	revision uint64
	own      bool // this worker has written it
}

// reserve takes places for the calls of a queue that have none, and releases unused ones, until neither
// is left.
func (l *Limiter) reserve(q *rateQueue) {
	wait := minPause
	for {
		l.mu.Lock()
		rate, calls, surplus := q.rate, q.without(maxBatch), 0
		if len(calls) == 0 {
			surplus = q.surplus()
		}
		if len(calls) == 0 && surplus == 0 || l.closed {
			q.reserving = false
			l.turn(q)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if len(calls) == 0 {
			l.release(q.scope, rate, surplus)
			continue
		}
		latest := make([]time.Time, len(calls))
		for i, w := range calls {
			latest[i] = w.latest
		}
		offers, err := l.take(q.scope, rate, latest)
		l.settle(q, calls, offers, err)
		if err == nil {
			wait = minPause
			_ = pause.For(l.ctx, writeInterval)
			continue
		}
		_ = pause.For(l.ctx, wait/2+rand.N(wait/2))
		wait = min(2*wait, maxPause)
	}
}

// settle passes the places to the calls. Without an answer of the store they continue to wait.
func (l *Limiter) settle(q *rateQueue, calls []*waiter, offers []offer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrMissing):
		for _, w := range calls {
			q.decide(w, again(0, "rate limit of %s: %v", q.scope, err))
		}
	case errors.Is(err, ErrTaken): // others are faster; it is tried again
	case err != nil:
		if now := time.Now(); l.log != nil && !l.closed && now.Sub(l.lastLogged) >= logInterval {
			l.lastLogged = now
			l.log.Warn("the bucket of rates does not answer; calls of tools with a rate limit wait for it", "err", err)
		}
	default:
		for i, o := range offers {
			if o.taken {
				q.add(o.at)
			} else {
				q.decide(calls[i], q.errTooLate(o.at))
			}
		}
		l.turn(q)
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
		if !slices.ContainsFunc(offers, func(o offer) bool { return o.taken }) {
			if remembered {
				remembered = false // another worker may have released places since: read again
				continue
			}
			l.remember(s, known)
			return offers, nil
		}
		revision, err := l.save(key, clock.ToServer(until), known.revision)
		if err == nil {
			l.remember(s, state{until, revision, true})
			return spaceOut(offers, time.Now()), nil
		}
		if !errors.Is(err, ErrTaken) {
			l.forget(s)
			return nil, err
		}
		remembered = false
		_ = pause.For(l.ctx, rand.N(tryPause<<min(try, 6)))
	}
	l.forget(s)
	return nil, ErrTaken
}

// spaceOut moves places that came while the store took its time to answer, all by the same time, so
// that their calls do not begin at the same time.
func spaceOut(offers []offer, now time.Time) []offer {
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

// release makes the last n places free again, if no worker has taken places after them. If that fails
// they lapse.
func (l *Limiter) release(s scope, rate target.Rate, n int) {
	known, ok := l.remembered(s)
	clock, err := l.synchronised()
	if !ok || !known.own || err != nil {
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
