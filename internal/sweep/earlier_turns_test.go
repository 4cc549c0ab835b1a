package sweep_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// claimedAgain stores turns that ended, removes their claims, and claims their keys again.
func (b *testSweep) claimedAgain(n int) {
	b.t.Helper()
	b.orphans(n)
	for i := range n {
		key := subjects.TurnKey("app", "chat", "", strconv.Itoa(i))
		_, err := b.Store.Create(b.t.Context(), idempotency.Record{
			Key: key.Public(events.KindToolResponse), Data: []byte(`{}`), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1},
		})
		require.NoError(b.t, err)
	}
	stream, err := b.JS.Stream(b.t.Context(), b.Space.TurnsStream())
	require.NoError(b.t, err)
	require.NoError(b.t, stream.Purge(b.t.Context(), jetstream.WithPurgeSequence(uint64(n)+1))) // the claims
	b.orphans(n)
}

// F21: see docs/faults.md.
func TestSweepFindsOrphansAfterTheResponsesOfEarlierTurns(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.claimedAgain(3)
	_, found := b.sweep(b.pages())
	require.Len(t, found, 3)
	_, found = b.sweep(b.pages())
	require.Len(t, found, 3, "and they stay open")
	f, err := b.Check(t.Context(), subjects.TurnKey("app", "chat", "", "1"), later())
	require.NoError(t, err)
	require.Equal(t, sweep.TurnOrphaned, f.Condition)
}

// staleStore reads turns as they were before their keys were claimed again: without the new claim.
type staleStore struct {
	idempotency.Store

	stale bool
}

func (s *staleStore) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Store.Scan(ctx, key, known)
	if !s.stale {
		return records, err
	}
	return slices.DeleteFunc(records, func(r idempotency.Record) bool { return r.Key == key.Public(events.KindToolCall) }), err
}

func TestSweepKeepsATurnOfWhichAStaleReadShowsOnlyTheResponseOfAnEarlierTurn(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.claimedAgain(3)
	store := &staleStore{Store: b.Store, stale: true}
	b.Store = store
	swept, found := b.sweep(b.pages())
	require.Empty(t, found)
	require.Equal(t, 3, swept.Open)
	store.stale = false
	_, found = b.sweep(b.pages())
	require.Len(t, found, 3)
}
