// Package query reads turns and questions from the journal, for everything that shows them: the request
// API, commands and frontends. It needs no worker.
//
// reader.go has the [Reader]: how the journal is read by filters with wildcards, within the search budget
// of the tenant that asks. question.go has the one decoder of a question's record and the one rule for its
// state. records.go decodes the events of claims, questions and responses for the handlers and the sweeps: each function
// checks that a record belongs under its key, and returns nothing, not a guess, when it does not.
package query

import (
	"context"
	"errors"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/internal/searches"
	"github.com/oneturn/oneturn/subjects"
)

// Reader reads the journal for tenants, each within its budget of searches. A tenant is a token.
type Reader struct {
	// Store is for reads by name, which need no budget.
	Store *kvstore.Store
	// Order finds records of chats by sequence, see [kvstore.Order].
	Order *kvstore.Order

	oversized kvstore.OversizedFilters
	budget    *searches.Budget
	// large are filters of turns that matched many names.
	large *recent.Set[string]
}

// The names of a turn are few, and the server finds them without the names of others. A filter that has
// matched many of them counts like one of a chat for a while.
const (
	manyNames    = 500
	largeFilters = 1_000
	largeFor     = time.Minute
)

// NewReader returns a reader of a journal.
func NewReader(store *kvstore.Store, budget *searches.Budget) *Reader {
	return &Reader{Store: store, Order: kvstore.NewOrder(store), budget: budget, large: recent.New[string](largeFilters, largeFor)}
}

// Within returns the function that runs a search within the budget of a tenant.
func (r *Reader) Within(ctx context.Context, app string) func(search func() error) error {
	return func(search func() error) error { return r.budget.Do(ctx, app, search) }
}

// Names lists names. It fails with [idempotency.ErrTooMany] beyond 10,000, and remembers that.
func (r *Reader) Names(app string) kvstore.Lister {
	return r.oversized.Lister(func(ctx context.Context, filter string) (names []subjects.Record, err error) {
		err = r.budget.Do(ctx, app, func() error {
			names, err = r.Store.Names(ctx, filter)
			return err
		})
		return names, err
	})
}

// NamesOfTurn is [Reader.Names] for filters of one turn. Clients that wait for turns list them often, so
// they count only where there are many.
func (r *Reader) NamesOfTurn(app string) kvstore.Lister {
	return func(ctx context.Context, filter string) ([]subjects.Record, error) {
		begun := time.Now()
		if r.IsLarge(filter) {
			return r.Names(app)(ctx, filter)
		}
		names, err := r.Store.Names(ctx, filter)
		if len(names) > manyNames || errors.Is(err, idempotency.ErrTooMany) {
			r.large.Add(filter, begun)
			r.budget.Charge(app, time.Since(begun))
		}
		return names, err
	}
}

// IsLarge reports whether a filter of a turn has recently matched many names.
func (r *Reader) IsLarge(filter string) bool { return r.large.Has(filter, time.Now()) }

// Last returns the last record that matches a filter.
func (r *Reader) Last(ctx context.Context, app, filter string) (found idempotency.Record, err error) {
	err = r.budget.Read(ctx, app, func() (int, error) {
		found, err = r.Store.Last(ctx, filter)
		return len(found.Data), err
	})
	return found, err
}

// Next returns the first record from a sequence on that matches a filter.
func (r *Reader) Next(ctx context.Context, app, filter string, from uint64) (found idempotency.Record, err error) {
	err = r.budget.Read(ctx, app, func() (int, error) {
		found, err = r.Store.Next(ctx, filter, from)
		return len(found.Data), err
	})
	return found, err
}

// CallsAsking is for the handlers: see [kvstore.Lister.CallsAsking].
func (r *Reader) CallsAsking(ctx context.Context, app, chat, ask string) ([]subjects.Key, error) {
	return r.Names(app).CallsAsking(ctx, app, chat, ask)
}

// Calls is for the handlers: see [kvstore.Lister.Calls].
func (r *Reader) Calls(ctx context.Context, app, chat string) ([]subjects.Key, error) {
	return r.Names(app).Calls(ctx, app, chat)
}

// Reused is for the handlers: see [kvstore.Lister.Reused].
func (r *Reader) Reused(ctx context.Context, q *kvstore.QuestionRef) ([]subjects.Key, error) {
	return r.Names(q.App).Reused(ctx, q)
}
