package handlers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

const (
	// looksAtOnce is how many reads of a page are under way at the same time.
	looksAtOnce = 8
	// commitEvery is after how many pages what was done is kept, should the sweep end.
	commitEvery = 16
)

// Scope bounds what a sweep looks at. The zero value is everything.
type Scope struct{ App, Chat string }

// matcher returns the function that tells the turns of the scope.
func (s Scope) matcher() func(subjects.Key) bool {
	app, chat := subjects.Token(s.App), subjects.Token(s.Chat)
	return func(k subjects.Key) bool { return (s.App == "" || k.App == app) && (s.Chat == "" || k.Chat == chat) }
}

// Swept is what came of a sweep.
type Swept struct {
	Headers int           // records of the journal read
	Open    int           // turns without a response, as far as they are known
	Looked  int           // of them looked at
	Oldest  time.Duration // age of the oldest of these
	Young   int           // of them claimed too lately to judge
	Wait    time.Duration // until the last of the young ones can be judged
	Mended  int           // turns that act was called for, without an error
	Erased  int           // sealed records of ended turns
	Failed  int           // turns that could not be read, or whose act failed
}

// open notes an open turn that was looked at.
func (s *Swept) open(age time.Duration, young bool, wait time.Duration) {
	s.Oldest = max(s.Oldest, age)
	if young {
		s.Young++
		s.Wait = max(s.Wait, wait)
	}
}

// Wait is how long it takes until a turn of this age is old enough to judge.
func (s *Sweep) Wait(age time.Duration) time.Duration { return max(0, 2*s.AckWait-age) }

// Act does what a turn needs, and returns the sequence of the resume that it has published, 0 for
// none: as long as that is in the inbound stream nothing more is done.
type Act func(ctx context.Context, f Finding) (resume uint64, err error)

// Run reads what is new in the journal, looks at the open turns that it knows, oldest look first,
// and calls act for each that needs a resume. It may be stopped or repeated at any point: what was
// done since the last commit is done again. Now is the time of the server.
func (s *Sweep) Run(ctx context.Context, pages SweepPages, now time.Time, scope Scope, act Act) (Swept, error) {
	state, err := pages.State(ctx)
	if err != nil {
		return Swept{}, fmt.Errorf("sweep: %w", err)
	}
	r := &round{Sweep: s, pages: pages, state: state, now: now, act: act, pace: newPacer(s.Rate)}
	if err := r.read(ctx, scope); err != nil {
		return r.out, err
	}
	err = r.lookAtAll(ctx)
	r.out.Open = r.state.Open
	return r.out, err
}

// round is one sweep.
type round struct {
	*Sweep

	pages SweepPages
	state SweepState // with what was done since the last commit
	now   time.Time
	act   Act
	pace  *pacer
	out   Swept

	behind   []OpenTurn // what stays open, and is in no page yet
	dropped  []uint64   // pages to drop behind the commit
	failures int        // in a row
}

// lookAtAll looks at each page that there is, once, within the budget.
func (r *round) lookAtAll(ctx context.Context) error {
	for last := r.state.Next; r.state.First < last; {
		if r.Budget > 0 && r.out.Looked >= r.Budget {
			break
		}
		page, err := r.pages.Page(ctx, r.state.First)
		if err != nil {
			return errors.Join(fmt.Errorf("sweep: %w", err), r.commit(ctx))
		}
		errPage := r.lookAtPage(ctx, page)
		r.dropped = append(r.dropped, r.state.First)
		r.state.First++
		if errPage != nil || len(r.dropped) >= commitEvery {
			if err := errors.Join(errPage, r.commit(context.WithoutCancel(ctx))); err != nil {
				return err
			}
		}
	}
	return r.commit(ctx)
}

// commit writes what stays open behind the newest page, and then where the sweeps are.
func (r *round) commit(ctx context.Context) error {
	for len(r.behind) > 0 {
		n := min(len(r.behind), pageTurns)
		if err := r.put(ctx, r.behind[:n]); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		r.behind = r.behind[n:]
	}
	if err := r.pages.Commit(ctx, r.state); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, n := range r.dropped {
		if err := r.pages.Drop(ctx, n); err != nil {
			r.Logger.Debug("a page that was swept is left; it is written over", "err", err)
		}
	}
	r.dropped = r.dropped[:0]
	return nil
}

// errManyOpen says that more turns are open than pages have names for.
var errManyOpen = fmt.Errorf("over %d turns are open", pageTurns*(pageNames-commitEvery))

func (r *round) put(ctx context.Context, page []OpenTurn) error {
	if r.state.Next-r.state.First >= pageNames-commitEvery {
		return errManyOpen
	}
	if err := r.pages.Put(ctx, r.state.Next, page); err != nil {
		return err
	}
	r.state.Next++
	return nil
}

// lookAtPage looks at the turns of a page. Those that it does not come to stay open.
func (r *round) lookAtPage(ctx context.Context, page []OpenTurn) error {
	quiet := r.quiet(ctx, page)
	for i := range page {
		o := &page[i]
		err := r.pace.wait(ctx)
		if err == nil {
			var ended bool
			if ended, err = r.lookAt(ctx, o, quiet[i]); ended {
				r.state.Open--
				continue
			}
		}
		if ctx.Err() != nil || r.failures >= maxFailures {
			r.behind = append(r.behind, page[i:]...)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("sweep: %w", err)
		}
		r.behind = append(r.behind, *o)
	}
	return nil
}

// lookAt looks at one turn, and reports whether it has ended, so that nothing is left to do.
func (r *round) lookAt(ctx context.Context, o *OpenTurn, quiet bool) (ended bool, err error) {
	r.out.Looked++
	if quiet {
		age, _ := o.age(r.now)
		r.out.open(age, age <= 2*r.AckWait, r.Wait(age))
		return false, nil
	}
	f, err := r.judgeOpen(ctx, o)
	var resume uint64
	if err == nil {
		resume, err = r.mend(ctx, o, &f)
	}
	if err != nil {
		r.failures++
		r.out.Failed++
		if ctx.Err() == nil {
			r.Logger.Warn("a turn could not be swept; the next sweep tries again", "key", o.Key, "err", err)
		}
		return false, err
	}
	r.failures = 0
	if f.Condition == TurnEnded || f.Condition == TurnUnclaimed {
		return true, nil
	}
	o.note(&f, resume)
	r.out.open(f.Age, f.Condition == TurnYoung, r.Wait(f.Age))
	return false, nil
}

// judgeOpen is Judge for a turn that has most likely ended.
func (r *round) judgeOpen(ctx context.Context, o *OpenTurn) (Finding, error) {
	key, _ := subjects.ParseCall(o.Key)
	ended, err := r.ended(ctx, key)
	if err != nil || ended {
		return Finding{Key: key, Condition: TurnEnded}, err
	}
	return r.Judge(ctx, key, r.now)
}

// mend does what a turn in its condition needs.
func (r *round) mend(ctx context.Context, o *OpenTurn, f *Finding) (resume uint64, err error) {
	switch {
	case f.Condition == TurnEnded && o.Secret && r.Erase != nil:
		n, err := r.Erase(ctx, f.Key)
		r.out.Erased += n
		if err != nil {
			return 0, fmt.Errorf("sweep: erase the secrets of turn %s: %w", f.Key, err)
		}
	case f.Condition.Mend():
		if resume, err = r.act(ctx, *f); err != nil {
			return 0, err
		}
		r.out.Mended++
	}
	return resume, nil
}

// quiet asks, several at a time, for which turns of a page what was found last still holds.
func (r *round) quiet(ctx context.Context, page []OpenTurn) []bool {
	quiet := make([]bool, len(page))
	slots := make(chan struct{}, looksAtOnce)
	var reads sync.WaitGroup
	for i := range page {
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			quiet[i] = r.isQuiet(ctx, &page[i])
		})
	}
	reads.Wait()
	return quiet
}

// isQuiet reports whether nothing has to be done for a turn, with one read at most. What cannot be
// read is looked at.
func (r *round) isQuiet(ctx context.Context, o *OpenTurn) bool {
	age, known := o.age(r.now)
	if known && age <= 2*r.AckWait {
		return true // too young
	}
	if o.Resume > 0 {
		held, err := r.LeaseHeld(ctx, idempotency.Lease{Stream: r.Space.InStream(), Seq: o.Resume})
		if err == nil && held {
			return true // nobody has taken it yet
		}
	}
	switch {
	case !known, r.MaxTurnLife > 0 && age > r.MaxTurnLife:
		return false
	case o.Parked > 0:
		newest, err := r.Store.Last(ctx, "*."+o.Key+".>")
		return err == nil && newest.Seq == o.Parked
	case o.Held > 0:
		held, err := r.LeaseHeld(ctx, idempotency.Lease{Stream: o.Stream, Seq: o.Held})
		return err == nil && held
	}
	return false
}
