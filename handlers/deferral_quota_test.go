package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
)

// TestDeferredMessagesOfATenantAreCountedWhereTheyAreKept: another worker, or one that was started again, knows of it, and other
// tenants have room.
func TestDeferredMessagesOfATenantAreCountedWhereTheyAreKept(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.limit(k.space.InStream(), func(c *jetstream.StreamConfig) { c.MaxBytes = 4 << 20 })
	const size = 200 << 10
	put, placed := deferral.Publisher(k.js, k.space), 0
	room := func() *deferral.Quota { return deferral.NewQuota(k.js, k.space) } // a worker that starts
	for i := range 10 {
		may, err := room().Take(t.Context(), "app", size)
		require.NoError(t, err)
		if !may {
			break
		}
		placed++
		require.NoError(t, put(t.Context(), deferral.Message{
			Subject: k.space.In("default", events.KindStructuredOutputReady, "app", "WF", fmt.Sprint("chat", i)),
			ID:      fmt.Sprintf("%022d-%d", i, size), At: time.Now().Add(time.Hour), Data: make([]byte, size),
		}))
	}
	require.Equal(t, 5, placed, "a quarter of what the inbound stream may hold")
	may, err := room().Take(t.Context(), "other", size)
	require.NoError(t, err)
	require.True(t, may)
	one := room()
	taken := 0
	for ; taken < 10; taken++ { // between two counts a worker adds its own
		if may, err := one.Take(t.Context(), "other", size); err != nil || !may {
			break
		}
	}
	require.Equal(t, 5, taken)
}

// TestTimeoutsOfOpenQuestionsTakeNoRoom: they are in the stream that holds what is deferred, and one tenant may
// have more of them than that has room for.
func TestTimeoutsOfOpenQuestionsTakeNoRoom(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.limit(k.space.InStream(), func(c *jetstream.StreamConfig) { c.MaxBytes = 64 << 10 })
	schedule := timers.ScheduleExpiry(k.js, k.space)
	for i := range 200 {
		key := subjects.TurnKey("asks", fmt.Sprint("chat", i), "", "turn")
		require.NoError(t, schedule(t.Context(), &events.Expire{
			TurnID: events.TurnID{App: "asks", Chat: fmt.Sprint("chat", i), Turn: "turn"}, Workflow: "WF", Pool: "default", Key: key.String(), Ask: "1",
			ToolCallID: "turn/1", ExpiresAt: time.Now().Add(time.Hour),
		}))
	}
	timers, err := k.js.Stream(t.Context(), k.space.TimersStream())
	require.NoError(t, err)
	require.Greater(t, timers.CachedInfo().State.Bytes, uint64(64<<10))
	may, err := deferral.NewQuota(k.js, k.space).Take(t.Context(), "other", 100)
	require.NoError(t, err)
	require.True(t, may)
}

// TestHeadersCountForTheRoomOfTheirTenant: a tenant that sends large ones has no more of the store than another.
func TestHeadersCountForTheRoomOfTheirTenant(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	k := newKit(t, toolFunc(nothing))
	k.limit(k.space.InStream(), func(c *jetstream.StreamConfig) { c.MaxBytes = most })
	h, _ := k.bounded(k.without, func(c *handlers.Config) {
		c.MaxAckPending = 1
		c.Defer, c.DeferralQuota = deferral.Publisher(k.js, k.space), deferral.NewQuota(k.js, k.space).Take
	})
	for i := range uint64(60) {
		m := k.message(2+i, 1)
		m.Header = nats.Header{"X": {strings.Repeat("x", 8000)}}
		h.Handle(t.Context(), m)
	}
	timers, err := k.js.Stream(t.Context(), k.space.TimersStream())
	require.NoError(t, err)
	require.LessOrEqual(t, timers.CachedInfo().State.Bytes, uint64(most/4))
	for worker, room := range map[string]*deferral.Quota{"the same": nil, "another": deferral.NewQuota(k.js, k.space)} {
		take := h.DeferralQuota
		if room != nil {
			take = room.Take
		}
		may, err := take(t.Context(), "app", 8000)
		require.NoError(t, err)
		require.False(t, may, worker)
		may, err = take(t.Context(), "other", 8000)
		require.NoError(t, err)
		require.True(t, may, worker)
	}
}

// TestDeferredAnswerKeepsItsRoom: newer messages take all that there is, and are decided; it is deferred again,
// and answers its question when a worker with the workflow gets it.
func TestDeferredAnswerKeepsItsRoom(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1")
	owner.park("1")
	h, before := k.bounded(k.without)
	for i := range uint64(3) {
		h.Handle(t.Context(), k.answers(2+i, owner.question("1"), yes()).Message)
	}
	require.Len(t, before.all, 1)
	full, deferred := k.bounded(k.without, func(c *handlers.Config) {
		c.MaxAckPending = 64
		c.DeferralQuota = func(context.Context, string, int) (bool, error) { return false, nil }
	})
	require.Equal(t, inbound.Nak, full.Handle(t.Context(), k.message(98, 1)).Do, "the only place is taken")
	newer := k.answers(99, owner.question("1"), yes())
	require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, full.Handle(t.Context(), newer.Message).Do)
	require.Equal(t, events.AnswerUnknown, newer.result(t).Code)
	again := k.again(before.all[0], 20)
	require.Equal(t, inbound.Ack, full.Handle(t.Context(), again).Do)
	require.Len(t, deferred.all, 1)
	require.Equal(t, idempotency.Open, owner.outcome("1"))
	k.Handle(t.Context(), k.again(deferred.all[0], 21))
	require.Equal(t, idempotency.Answered, owner.outcome("1"))
}

// TestAnswerThatWasAcceptedBeforeIsNotRefusedWhenItHasToWait: the worker that accepted it may have died before the
// turn was resumed. A worker without the workflow and without room keeps the message; another answer is refused.
func TestAnswerThatWasAcceptedBeforeIsNotRefusedWhenItHasToWait(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	owner := k.asker("asks", "")
	owner.ask("1")
	accepted := k.answers(5, owner.question("1"), yes())
	_, err := k.Journal.Answer(t.Context(), idempotency.Answer{
		Key: owner.key, ID: "1", Lease: accepted.Lease, Outcome: idempotency.Answered, Data: []byte(`{"status":"approved"}`),
		Check: func(idempotency.Record) error { return nil },
		Ack:   func(idempotency.Record) ([]byte, error) { return []byte(`{}`), nil },
	})
	require.NoError(t, err)
	full, _ := k.bounded(k.without, func(c *handlers.Config) {
		c.MaxAckPending = 64
		c.DeferralQuota = func(context.Context, string, int) (bool, error) { return false, nil }
	})
	require.Equal(t, inbound.Nak, full.Handle(t.Context(), k.message(98, 1)).Do, "the only place is taken")
	other := k.answers(6, owner.question("1"), yes())
	accepted.Lease.Delivery, other.Lease.Delivery = 2, 2
	require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, full.Handle(t.Context(), other.Message).Do)
	require.Equal(t, events.AnswerUnknown, other.result(t).Code)
	d := full.Handle(t.Context(), accepted.Message)
	require.Equal(t, inbound.Nak, d.Do)
	require.Positive(t, d.Delay)
	require.LessOrEqual(t, d.Delay, time.Minute)
}
