package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// commitEvery is after how many pages what was done is kept, should the sweep end.
const commitEvery = 16

// Scope bounds what a sweep looks at. The zero value is everything.
type Scope struct{ App, Chat string }

// matcher returns the function that tells the turns of the scope.
func (s Scope) matcher() func(subjects.Key) bool {
	app, chat := subjects.Token(s.App), subjects.Token(s.Chat)
	return func(k subjects.Key) bool { return (s.App == "" || k.App == app) && (s.Chat == "" || k.Chat == chat) }
}

// Swept is what came of a sweep.
type Swept struct {
	Headers int           `json:"headers"` // records of the journal read
	Open    int           `json:"open"`    // turns without a response, as far as they are known
	Checked int           `json:"looked"`  // of them looked at
	Read    int           `json:"read"`    // of these, those that something had to be read of
	Oldest  time.Duration `json:"oldest"`  // age of the oldest of these
	Young   int           `json:"young"`   // of them claimed too lately to judge
	Wait    time.Duration `json:"wait"`    // until the last of the young ones can be judged
	Resumed int           `json:"mended"`  // turns that act was called for, without an error
	Erased  int           `json:"erased"`  // sealed records of ended turns
	Failed  int           `json:"failed"`  // turns that could not be read, or whose act failed
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
func (s *Sweep) Run(ctx context.Context, pages Pages, now time.Time, scope Scope, act Act) (Swept, error) {
	state, err := pages.State(ctx)
	if err != nil {
		return Swept{}, fmt.Errorf("sweep: %w", err)
	}
	r := &round{Sweep: s, pages: pages, state: state, now: now, act: act, pace: jsapi.NewPacer(s.Rate), news: newUpdates()}
	if err := r.read(ctx, scope); err != nil {
		return r.out, err
	}
	err = r.checkPages(ctx)
	if errors.Is(err, errPageLost) {
		r.Logger.Warn("what sweeps know of open turns is damaged; the next sweep reads the whole journal", "err", err)
		r.state, r.behind, r.dropped = State{First: r.state.Next, Next: r.state.Next}, nil, nil
		err = errors.Join(err, r.commit(context.WithoutCancel(ctx)))
	}
	r.out.Open = r.state.Open
	return r.out, err
}

// round is one sweep.
type round struct {
	*Sweep

	pages Pages
	state State // with what was done since the last commit
	now   time.Time
	first uint64 // sequence of the journal that is retained
	act   Act
	pace  *jsapi.Pacer
	news  *updates
	out   Swept

	behind   []OpenTurn // what stays open, and is in no page yet
	known    uint64     // what is known of all of these: see [Page]
	dropped  []uint64   // pages to drop after the commit
	failures int        // in a row
	failed   []OpenTurn // of the page that is looked at
}

// keep puts turns that stay open behind the others.
func (r *round) keep(known uint64, turns ...OpenTurn) {
	if len(r.behind) == 0 || known < r.known {
		r.known = known
	}
	r.behind = append(r.behind, turns...)
}

// checkPages looks at each page that there is, once, within the budget.
func (r *round) checkPages(ctx context.Context) error {
	for last := r.state.Next; r.state.First < last; {
		if r.Budget > 0 && r.out.Read >= r.Budget {
			break
		}
		page, err := r.pages.Page(ctx, r.state.First)
		if err != nil {
			return errors.Join(fmt.Errorf("sweep: %w", err), r.commit(ctx))
		}
		errPage := r.checkPage(ctx, page)
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
		n := min(len(r.behind), cmp.Or(r.PageTurns, pageTurns))
		if err := r.put(ctx, Page{Known: r.known, Turns: r.behind[:n]}); err != nil {
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

func (r *round) put(ctx context.Context, page Page) error {
	if r.state.Next-r.state.First >= pageNames-commitEvery {
		return errManyOpen
	}
	if err := r.pages.Put(ctx, r.state.Next, page); err != nil {
		return err
	}
	r.state.Next++
	return nil
}
