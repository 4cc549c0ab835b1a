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

// This file is one sweep of the journal. A round reads the new headers, then checks each page once within the budget.
// What stays open is appended to the pages, and commit stores the pages before the state that refers to them, so that
// a sweep that ends anywhere is repeated from the last commit.

// commitEvery is after how many pages the progress of a sweep is committed.
const commitEvery = 16

// Scope bounds which turns a sweep checks. The zero value is all of them.
type Scope struct{ App, Chat string }

// matcher returns the function that reports whether a turn is in the scope.
func (s Scope) matcher() func(subjects.Key) bool {
	app, chat := subjects.Token(s.App), subjects.Token(s.Chat)
	return func(k subjects.Key) bool { return (s.App == "" || k.App == app) && (s.Chat == "" || k.Chat == chat) }
}

// Swept is the result of a sweep.
type Swept struct {
	Headers int           `json:"headers"` // records of the journal read
	Open    int           `json:"open"`    // turns without a response, as far as they are known
	Checked int           `json:"checked"` // of them checked
	Read    int           `json:"read"`    // of these, the turns of which something had to be read
	Oldest  time.Duration `json:"oldest"`  // age of the oldest of these
	Young   int           `json:"young"`   // of them younger than [Sweep.MinAge]
	Wait    time.Duration `json:"wait"`    // until the last of the young ones can be checked
	Resumed int           `json:"resumed"` // turns that the [ResumeFunc] was called for, without an error
	Erased  int           `json:"erased"`  // sealed records of ended turns
	Failed  int           `json:"failed"`  // turns that could not be read, or whose ResumeFunc failed
}

// open counts an open turn that was checked, and how long it has to wait if it is young.
func (s *Swept) open(age time.Duration, young bool, wait time.Duration) {
	s.Oldest = max(s.Oldest, age)
	if young {
		s.Young++
		s.Wait = max(s.Wait, wait)
	}
}

// ResumeFunc does what a turn that needs a resume needs, such as [Sweep.Resume]. It returns the sequence of the resume
// that it has published, 0 for none: as long as that message is in the inbound stream nothing more is done.
type ResumeFunc func(ctx context.Context, f Finding) (resume uint64, err error)

// Run reads what is new in the journal, checks the open turns that it knows, the one whose last check is
// oldest first, and calls resume for each that needs one. It may be stopped or repeated at any point: what was
// done since the last commit is done again. Now is the time of the server.
func (s *Sweep) Run(ctx context.Context, pages Pages, now time.Time, scope Scope, resume ResumeFunc) (Swept, error) {
	state, err := pages.State(ctx)
	if err != nil {
		return Swept{}, fmt.Errorf("sweep: %w", err)
	}
	r := &round{Sweep: s, pages: pages, state: state, now: now, resumeTurn: resume, pace: jsapi.NewRateLimiter(s.Rate), news: makeNewRecords()}
	if err := r.read(ctx, scope); err != nil {
		return r.out, err
	}
	err = r.checkPages(ctx)
	if errors.Is(err, errPageLost) {
		r.Logger.Warn("what sweeps know of open turns is damaged; the next sweep reads the whole journal", "err", err)
		r.state, r.unsaved, r.dropped = State{First: r.state.Next, Next: r.state.Next}, nil, nil
		err = errors.Join(err, r.commit(context.WithoutCancel(ctx)))
	}
	r.out.Open = r.state.Open
	return r.out, err
}

// round is one sweep.
type round struct {
	*Sweep

	pages      Pages
	state      State // including what was done since the last commit
	now        time.Time
	first      uint64 // sequence of the journal that is retained
	resumeTurn ResumeFunc
	pace       *jsapi.RateLimiter
	news       *newRecords
	out        Swept

	unsaved  []OpenTurn // what stays open, and is in no page yet
	known    uint64     // what is known of all of these: see [Page]
	dropped  []uint64   // pages to drop after the commit
	failures int        // in a row
	failed   []OpenTurn // of the page that is being checked
}

// keep appends turns that stay open to the others.
func (r *round) keep(known uint64, turns ...OpenTurn) {
	if len(r.unsaved) == 0 || known < r.known {
		r.known = known
	}
	r.unsaved = append(r.unsaved, turns...)
}

// checkPages checks each page that there is, once, within the budget.
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

// commit writes what stays open to pages after the newest one, and then the state of the sweeps.
func (r *round) commit(ctx context.Context) error {
	for len(r.unsaved) > 0 {
		n := min(len(r.unsaved), cmp.Or(r.PageTurns, pageTurns))
		if err := r.put(ctx, Page{Known: r.known, Turns: r.unsaved[:n]}); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		r.unsaved = r.unsaved[n:]
	}
	if err := r.pages.Commit(ctx, r.state); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, n := range r.dropped {
		if err := r.pages.Drop(ctx, n); err != nil {
			r.Logger.Debug("a page that was swept could not be dropped; it will be overwritten", "err", err)
		}
	}
	r.dropped = r.dropped[:0]
	return nil
}

// errManyOpen is the error of a sweep that finds more open turns than pages have names for.
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
