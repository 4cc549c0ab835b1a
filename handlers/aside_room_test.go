package handlers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
)

// TestMessagesThatMustNotBePutAsideAreJudgedOrKeepTheirPlaces: beyond the bound, and while the store is nearly full. What
// its sender can send again is judged, what ends a question is put aside all the same, and no new turn is claimed
// in a full store.
func TestMessagesThatMustNotBePutAsideAreJudgedOrKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"beyond the bound": false, "full store": true} {
		for kind, one := range map[string]struct {
			m           func(k *kit, a *asker, seq uint64) *handlers.Message
			kept, aside bool
		}{
			"turn": {func(k *kit, _ *asker, seq uint64) *handlers.Message { return k.message(seq, 1) }, full, false},
			"answer": {func(k *kit, a *asker, seq uint64) *handlers.Message {
				return k.says(seq, a.question("1"), yes()).Message
			}, false, false},
			"early answer": {func(k *kit, a *asker, seq uint64) *handlers.Message {
				return k.says(seq, a.question("2"), yes()).Message
			}, false, false},
			"expiry":       {func(k *kit, a *asker, seq uint64) *handlers.Message { return k.expiry(seq, a, "1").Message }, false, true},
			"early expiry": {func(k *kit, a *asker, seq uint64) *handlers.Message { return k.expiry(seq, a, "2").Message }, false, true},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, toolFunc(nothing))
				owner := k.asker("asks", "")
				owner.ask("1")
				h, aside := k.bounded(k.without, func(c *handlers.Config) {
					c.Full = func() (bool, time.Time) { return full, time.Time{} }
					c.AsideRoom = func(context.Context, string, int) (bool, error) { return false, nil }
				})
				for i := range uint64(4) {
					d := h.Handle(t.Context(), one.m(k, owner, 2+i))
					if i < 2 || one.kept {
						require.Equal(t, handlers.Nak, d.Do)
						continue
					}
					require.Contains(t, []handlers.Do{handlers.Ack, handlers.Erase}, d.Do)
				}
				require.Equal(t, one.aside, len(aside.all) > 0, "expiries alone are put aside")
				require.Equal(t, idempotency.Open, owner.outcome("1"))
				if kind == "turn" && !full {
					require.Equal(t, events.CodeNoBinding, k.response().Code)
				}
			})
		}
	}
}

// TestWhatATenantHasPutAsideIsCountedWhereItIsKept: another worker, or one that was started again, knows of it, and other
// tenants have room.
func TestWhatATenantHasPutAsideIsCountedWhereItIsKept(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	in, err := k.js.Stream(t.Context(), k.space.InStream())
	require.NoError(t, err)
	config := in.CachedInfo().Config
	config.MaxBytes = 4 << 20
	_, err = k.js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	const size = 200 << 10
	put, placed := handlers.DeferMessages(k.js, k.space), 0
	room := func() *handlers.AsideRoom { return handlers.NewAsideRoom(k.js, k.space) } // a worker that starts
	for i := range 10 {
		may, err := room().Take(t.Context(), "app", size)
		require.NoError(t, err)
		if !may {
			break
		}
		placed++
		require.NoError(t, put(t.Context(), handlers.Deferral{
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
	for ; taken < 10; taken++ { // between two looks a worker counts its own
		if may, err := one.Take(t.Context(), "other", size); err != nil || !may {
			break
		}
	}
	require.Equal(t, 5, taken)
}
