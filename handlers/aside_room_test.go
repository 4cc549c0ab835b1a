package handlers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
)

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
