package query

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/subjects"
)

// Reader reads the journal, for tenants each within its budget of searches, and within the part of the user that a context names, see
// [searchbudget.ForUser]. A tenant is a token.
type Reader struct {
	nc     *nats.Conn
	space  subjects.Space
	store  *kvstore.Store
	budget *searchbudget.Budget
	order  *Order // of the journal
	timers *Order // of the timers that end questions

	oversized OversizedFilters
	unnamed   unnamed
	// large are filters of turns that matched many names.
	large *recent.Set[string]

	copies copies
	listed listedNames
	near   uint64              // nearRecords
	loaded *recent.Set[string] // filters of chats whose blocks the server has loaded
	reads  *reads              // of histories

	countHistory func(mirror bool)
}

// The names of a turn are few, and the server finds them without the names of others. A filter that has
// matched many of them counts like one of a chat for a while.
const (
	manyNames    = 500
	largeFilters = 1_000
	largeFor     = time.Minute
)

// New returns a reader of a journal. Without a budget (nil) nothing is refused.
func New(nc *nats.Conn, space subjects.Space, store *kvstore.Store, budget *searchbudget.Budget) *Reader {
	return &Reader{
		nc: nc, space: space, store: store, budget: budget, large: recent.New[string](largeFilters, largeFor),
		near: nearRecords, reads: newReads(), countHistory: func(bool) {}, loaded: recent.New[string](maxLoadedChats, blocksFor),
		order: NewOrder(nc, space.TurnsStream()), timers: NewOrder(nc, space.TimersStream()),
	}
}

// within returns the function that runs a search within the budget of a tenant.
func (r *Reader) within(ctx context.Context, app string) func(search func() error) error {
	return func(search func() error) error { return r.budget.Do(ctx, app, search) }
}

// Names lists names. It fails with [idempotency.ErrTooMany] beyond 10,000, and remembers that, and with a
// [*searchbudget.BusyError] if the tenant has used up its budget.
func (r *Reader) Names(app string) Lister {
	return r.oversized.Lister(func(ctx context.Context, filter string) (names []subjects.Record, err error) {
		err = r.budget.Do(ctx, app, func() error {
			names, err = r.store.Names(ctx, filter)
			return err
		})
		return names, err
	})
}

// namesOfTurn is [Reader.Names] for filters of one turn. Clients that wait for turns list them often, so
// they count only where there are many.
func (r *Reader) namesOfTurn(app string) Lister {
	return func(ctx context.Context, filter string) ([]subjects.Record, error) {
		begun := time.Now()
		if r.isLarge(filter) {
			return r.Names(app)(ctx, filter)
		}
		names, err := r.store.Names(ctx, filter)
		if len(names) > manyNames || errors.Is(err, idempotency.ErrTooMany) {
			r.large.Add(filter, begun)
			r.budget.Charge(ctx, app, time.Since(begun))
		}
		return names, err
	}
}

// isLarge reports whether a filter of a turn has recently matched many names.
func (r *Reader) isLarge(filter string) bool { return r.large.Has(filter, time.Now()) }

// last returns the last record that matches a filter.
func (r *Reader) last(ctx context.Context, app, filter string) (found idempotency.Record, err error) {
	err = r.budget.Read(ctx, app, func() (int, error) {
		found, err = r.store.Last(ctx, filter)
		return len(found.Data), err
	})
	return found, err
}

// next returns the first record from a sequence on that matches a filter.
func (r *Reader) next(ctx context.Context, app, filter string, from uint64) (found idempotency.Record, err error) {
	err = r.budget.Read(ctx, app, func() (int, error) {
		found, err = r.store.Next(ctx, filter, from)
		return len(found.Data), err
	})
	return found, err
}
