package oneturn

import (
	"context"
	"errors"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/searches"
	"github.com/oneturn/oneturn/subjects"
)

// journalSearches is how a worker and its request API read the journal by filters with wildcards: for
// a tenant, a token, within its budget.
type journalSearches struct {
	store  *idempotency.KV
	order  *idempotency.Order
	crowds idempotency.Crowds
	budget *searches.Budget
	// large are filters of turns that matched many names.
	large *recent.Set[string]
}

// The names of a turn are few, and the server finds them without those of others. A filter that has
// matched many of them counts like that of a chat for a while.
const (
	manyNames    = 500
	largeFilters = 1_000
	largeFor     = time.Minute
)

func newJournalSearches(store *idempotency.KV, budget *searches.Budget) *journalSearches {
	return &journalSearches{store: store, order: idempotency.NewOrder(store), budget: budget, large: recent.New[string](largeFilters, largeFor)}
}

// within returns the budget of a tenant.
func (s *journalSearches) within(ctx context.Context, app string) func(search func() error) error {
	return func(search func() error) error { return s.budget.Do(ctx, app, search) }
}

// names lists names. It fails with [idempotency.ErrTooMany] beyond 10,000, and remembers that.
func (s *journalSearches) names(app string) idempotency.Lister {
	return s.crowds.Lister(func(ctx context.Context, filter string) (names []subjects.Record, err error) {
		err = s.budget.Do(ctx, app, func() error {
			names, err = s.store.Names(ctx, filter)
			return err
		})
		return names, err
	})
}

// ofTurn is names for filters of one turn. Who waits for turns reads them often: they count only where
// there are many.
func (s *journalSearches) ofTurn(app string) idempotency.Lister {
	return func(ctx context.Context, filter string) ([]subjects.Record, error) {
		begun := time.Now()
		if s.isLarge(filter) {
			return s.names(app)(ctx, filter)
		}
		names, err := s.store.Names(ctx, filter)
		if len(names) > manyNames || errors.Is(err, idempotency.ErrTooMany) {
			s.large.Add(filter, begun)
			s.budget.Charge(app, time.Since(begun))
		}
		return names, err
	}
}

// isLarge reports whether a filter of a turn has matched many names lately.
func (s *journalSearches) isLarge(filter string) bool { return s.large.Has(filter, time.Now()) }

// last returns the last record that matches a filter.
func (s *journalSearches) last(ctx context.Context, app, filter string) (r idempotency.Record, err error) {
	err = s.budget.Read(ctx, app, func() (int, error) {
		r, err = s.store.Last(ctx, filter)
		return len(r.Data), err
	})
	return r, err
}

// next returns the first record from a sequence on that matches a filter.
func (s *journalSearches) next(ctx context.Context, app, filter string, from uint64) (r idempotency.Record, err error) {
	err = s.budget.Read(ctx, app, func() (int, error) {
		r, err = s.store.Next(ctx, filter, from)
		return len(r.Data), err
	})
	return r, err
}

// askers is for the handlers: see [idempotency.Lister.Askers].
func (s *journalSearches) askers(ctx context.Context, app, chat, ask string) ([]subjects.Key, error) {
	return s.names(app).Askers(ctx, app, chat, ask)
}

// calls is for the handlers: see [idempotency.Lister.Calls].
func (s *journalSearches) calls(ctx context.Context, app, chat string) ([]subjects.Key, error) {
	return s.names(app).Calls(ctx, app, chat)
}

// reused is for the handlers: see [idempotency.Lister.Reused].
func (s *journalSearches) reused(ctx context.Context, q *idempotency.QuestionRef) ([]subjects.Key, error) {
	return s.names(q.App).Reused(ctx, q)
}
