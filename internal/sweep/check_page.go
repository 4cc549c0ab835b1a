package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// This file checks the turns of a page. Several turns are read at the same time (startChecks): one whose headers
// already show its condition is not read (withoutRead), the others cost one read if nothing has changed since the last
// check (isQuiet), and the whole turn otherwise. What they need is then done in their order (applyCheck).

const (
	// concurrentChecks is how many turns of a page are checked at the same time by default.
	concurrentChecks = 8
	// checksKept bounds the turns whose records are in memory until what they need is done.
	checksKept = 4 * concurrentChecks
)

// turnCheck is what was found of a turn of a page.
type turnCheck struct {
	done  bool // else the sweep ended before
	read  bool // something was read
	quiet bool // what was found last still holds
	found Finding
	err   error
}

// checkPage checks the turns of a page. Those that it does not reach stay open.
func (r *round) checkPage(ctx context.Context, page Page) error {
	for rest := page.Turns; len(rest) > 0; {
		some := rest[:min(len(rest), checksKept)]
		n, err := r.checkTurns(ctx, some, page.Known)
		rest = rest[n:]
		if err != nil {
			r.keep(page.Known, rest...)
			r.keepFailed(page.Known)
			return fmt.Errorf("sweep: %w", err)
		}
	}
	r.keepFailed(page.Known)
	return nil
}

// keepFailed puts the turns of a page that failed after all others, so that the others are checked first
// even if a sweep ends at failures.
func (r *round) keepFailed(known uint64) {
	if len(r.failed) > 0 {
		r.keep(known, r.failed...)
		r.failed = nil
	}
}

// checkTurns checks turns of a page and does what they need. It returns how many it has dealt with,
// and why not more.
func (r *round) checkTurns(ctx context.Context, turns []OpenTurn, known uint64) (int, error) {
	checks := r.startChecks(ctx, turns, known)
	for i := range turns {
		if !checks[i].done {
			return i, r.over(ctx, checks[i].err)
		}
		switch ended, err := r.applyCheck(ctx, &turns[i], &checks[i]); {
		case ended:
			r.state.Open--
		case err != nil && ctx.Err() != nil:
			return i, r.over(ctx, err)
		case err != nil:
			r.failed = append(r.failed, turns[i])
			if r.failures >= maxFailures {
				return i + 1, err
			}
		default:
			r.keep(r.state.From, turns[i])
		}
	}
	return len(turns), nil
}

// over is why a sweep checks nothing more.
func (r *round) over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// startChecks reads turns of a page, several at a time, until the sweep is over.
func (r *round) startChecks(ctx context.Context, turns []OpenTurn, known uint64) []turnCheck {
	checks := make([]turnCheck, len(turns))
	slots := make(chan struct{}, cmp.Or(r.Concurrency, concurrentChecks))
	var reads sync.WaitGroup
	defer reads.Wait()
	for i := range turns {
		o := &turns[i]
		since := r.news.of(o.Key, known)
		o.Newest = max(o.Newest, since.newest)
		if checks[i] = r.withoutRead(o, since); checks[i].done {
			continue
		}
		if r.pace.Wait(ctx) != nil {
			return checks
		}
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			checks[i] = r.withReads(ctx, o, since)
		})
	}
	return checks
}

// withoutRead checks a turn by the headers of the journal, if these are enough.
func (r *round) withoutRead(o *OpenTurn, since sinceThen) turnCheck {
	age, known := o.age(r.now)
	switch {
	case since.ended && !o.Secret:
		key, _ := subjects.ParseCall(o.Key)
		return turnCheck{done: true, found: Finding{Key: key, Condition: TurnEnded}}
	case since.ended, !known:
		return turnCheck{}
	case age <= r.MinAge():
		return turnCheck{done: true, quiet: true}
	case r.MaxTurnLife > 0 && age > r.MaxTurnLife:
		return turnCheck{}
	}
	return turnCheck{done: since.nothing && o.parked(), quiet: true}
}

// withReads reads whether the last check of a turn still holds, and checks it again if not.
func (r *round) withReads(ctx context.Context, o *OpenTurn, since sinceThen) turnCheck {
	l := turnCheck{done: true, read: true}
	if l.quiet, l.err = r.isQuiet(ctx, o); l.quiet || l.err != nil {
		return l
	}
	key, _ := subjects.ParseCall(o.Key)
	if o.Message {
		l.found, l.err = r.CheckMessage(ctx, key, r.now)
		return l
	}
	if since.ended || !since.all { // else the headers would have shown it
		if ended, err := r.ended(ctx, key, o.claim()); ended || err != nil {
			l.found, l.err = Finding{Key: key, Condition: TurnEnded}, err
			return l
		}
	}
	l.found, l.err = r.Check(ctx, key, r.now)
	return l
}

// isQuiet reports whether nothing has to be done for a turn, with one read at most. If that read fails the turn is
// checked, unless it was about the last resume: as long as that may be in the stream no other is published.
func (r *round) isQuiet(ctx context.Context, o *OpenTurn) (bool, error) {
	if o.Resume > 0 {
		held, err := r.LeaseHeld(ctx, idempotency.Lease{Stream: r.Space.InStream(), Seq: o.Resume})
		if err != nil {
			return false, fmt.Errorf("look for the resume of turn %s: %w", o.Key, err)
		}
		if held {
			return true, nil // no worker has received it yet
		}
	}
	age, known := o.age(r.now)
	switch {
	case !known, r.MaxTurnLife > 0 && age > r.MaxTurnLife:
		return false, nil
	case o.Of != "":
		return r.turnIsOpen(ctx, o)
	case o.parked():
		key, _ := subjects.ParseCall(o.Key)
		newest, err := r.Store.Last(ctx, key.TurnRecords()) // of its steps as well
		return err == nil && newest.Seq == o.Parked, nil
	case o.Held > 0:
		held, err := r.LeaseHeld(ctx, idempotency.Lease{Stream: o.Stream, Seq: o.Held})
		return err == nil && held, nil
	}
	return false, nil
}

// applyCheck does what a turn needs after its check, and reports whether it has ended, so that nothing
// is left to do.
func (r *round) applyCheck(ctx context.Context, o *OpenTurn, l *turnCheck) (ended bool, err error) {
	r.out.Checked++
	if l.read {
		r.out.Read++
	}
	if l.quiet {
		age, _ := o.age(r.now)
		r.out.open(age, age <= r.MinAge(), r.MinAge()-age)
		return false, nil
	}
	f, err := &l.found, l.err
	if err == nil && f.Turn != nil && f.Turn.Claim != nil && o.Seq < f.Turn.Claim.Seq {
		return true, nil // the key has a later claim, which the pages list as another turn
	}
	if err == nil && f.endedEarlier(o.claim()) {
		f.Condition = TurnUnclaimed // to a read that was stale
	}
	var resume uint64
	if err == nil {
		resume, err = r.handle(ctx, o, f)
	}
	if err != nil {
		if !errors.Is(err, idempotency.ErrTooMany) { // which is about the turn, not about the server
			r.failures++
		}
		r.out.Failed++
		if ctx.Err() == nil {
			r.Logger.Warn("a turn could not be swept; the next sweep tries again", "key", o.Key, "err", err)
		}
		return false, err
	}
	r.failures = 0
	// A claim that was read and is still retained is only not seen by a read that was stale.
	if f.Condition == TurnEnded || f.Condition == TurnUnclaimed && o.Seq < r.first {
		return true, nil
	}
	o.note(f, resume)
	r.out.open(f.Age, f.Condition == TurnYoung, r.MinAge()-f.Age)
	return false, nil
}

// handle does what a turn in its condition needs.
func (r *round) handle(ctx context.Context, o *OpenTurn, f *Finding) (resume uint64, err error) {
	switch {
	case f.Condition == TurnEnded && o.Secret && r.Erase != nil:
		n, err := r.Erase(ctx, f.Key)
		r.out.Erased += n
		if err != nil {
			return 0, fmt.Errorf("sweep: erase the secrets of turn %s: %w", f.Key, err)
		}
	case f.Condition.NeedsResume():
		if resume, err = r.resumeTurn(ctx, *f); err != nil {
			return 0, err
		}
		r.out.Resumed++
	}
	return resume, nil
}
