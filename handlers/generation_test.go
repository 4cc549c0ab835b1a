package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
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
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	claim, err := k.store.Last(t.Context(), key.Public(events.KindToolCall))
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "1", fmt.Sprint(k.response().Payload), "a duplicate")

	k.store.Expire(claim.Seq)
	k.later(retention)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(3, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(4, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload), "a duplicate of the second")
}

// F21: a worker may live longer than the retention, and see few turns in it.
func TestForgottenTurnIsNotTakenForOneThatHasFinished(t *testing.T) {
	t.Parallel()
	k := lives(t)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	k.store.Expire(1_000)
	k.later(retention)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
}

func TestNothingIsRememberedOfTheTurnsOfAnotherJournal(t *testing.T) {
	t.Parallel()
	k := lives(t)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 1)).Do)
	k.store = storetest.NewMemory()
	k.Journal = idempotency.New(k.store, "w", idempotency.Options{})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(2, 1)).Do)
	require.Equal(t, "2", fmt.Sprint(k.response().Payload))
}

func TestCancelOfAnEarlierGenerationStopsNoTool(t *testing.T) {
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
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(3, 1)).Do)
	require.True(t, k.response().Success, "this one was not cancelled")
}
