package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// lives is a kit whose tool returns how often it was entered.
func lives(t *testing.T) *kit {
	t.Helper()
	runs := 0
	return newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		runs++
		return tools.Result{Value: json.RawMessage(strconv.Itoa(runs))}, nil
	}))
}

// later lets time pass, by the clock of the worker.
func (k *kit) later(d time.Duration) {
	now := k.Now
	k.Now = func() time.Time { return now().Add(d) }
}

const retention = 9 * 24 * time.Hour

// The records of a turn expire one by one, and its claim is the first.
func TestTurnWhoseClaimHasExpiredRunsAndGetsItsOwnResponse(t *testing.T) {
	t.Parallel()
	k := lives(t)
	key := subjects.TurnKey("app", "chat", "", "turn")
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	claim, err := k.store.Last(t.Context(), key.Public(events.KindToolCall))
	require.NoError(t, err)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "1", fmt.Sprint(k.response().Payload), "a duplicate")

	k.store.Expire(claim.Seq)
	k.later(retention)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(3, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(4, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload), "a duplicate of the second")
}

// F21: a worker may live longer than the retention, and see few turns in it.
func TestForgottenTurnIsNotTakenForOneThatHasFinished(t *testing.T) {
	t.Parallel()
	k := lives(t)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	k.store.Expire(1_000)
	k.later(retention)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
}

func TestNothingIsRememberedOfTheTurnsOfAnotherJournal(t *testing.T) {
	t.Parallel()
	k := lives(t)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	k.store = storetest.NewMemory()
	k.Journal = idempotency.New(k.store, "w", idempotency.Options{})
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
}

func TestCancelOfAFormerLifeStopsNoTool(t *testing.T) {
	t.Parallel()
	k := lives(t)
	key := subjects.TurnKey("app", "chat", "", "turn")
	c := idempotency.Claim{Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}, Effect: "unsafe", Event: k.claimEvent()}
	former, err := k.Journal.Claim(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, k.Journal.Cancel(t.Context(), idempotency.Claim{Key: key}, []byte(`{}`)))
	_, err = k.Journal.Finish(t.Context(), former.Hold, []byte(`{}`))
	require.NoError(t, err)
	k.CancelSeen(key)

	k.store.Expire(former.Hold.Claim)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(3, 1)).Do)
	require.True(t, k.response().Success, "nobody has cancelled this one")
}

// secondLives stores a turn that ended, takes its claim, and claims the key anew.
func (b *broom) secondLives(n int) {
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
func TestSweepFindsOrphansBehindTheResponsesOfFormerLives(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.secondLives(3)
	_, found := b.sweep(b.pages())
	require.Len(t, found, 3)
	_, found = b.sweep(b.pages())
	require.Len(t, found, 3, "and they stay open")
	f, err := b.Judge(t.Context(), subjects.TurnKey("app", "chat", "", "1"), later())
	require.NoError(t, err)
	require.Equal(t, handlers.TurnOrphaned, f.Condition)
}

// staleStore reads turns as they were when their keys began another life: without the new claim.
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

func TestSweepKeepsATurnOfWhichAStaleReadShowsOnlyTheEndOfAFormerLife(t *testing.T) {
	t.Parallel()
	b := newBroom(t)
	b.secondLives(3)
	store := &staleStore{Store: b.Store, stale: true}
	b.Store = store
	swept, found := b.sweep(b.pages())
	require.Empty(t, found)
	require.Equal(t, 3, swept.Open)
	store.stale = false
	_, found = b.sweep(b.pages())
	require.Len(t, found, 3)
}
