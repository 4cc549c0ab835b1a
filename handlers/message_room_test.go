package handlers_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
)

func TestNewMessageWaitsWhileTheStoreIsNearlyFullAndAStoredOneContinues(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.Variables = &failsOnce{k.Variables, 1}
	stored := k.writes("stored", "Interviewer", "NEXT")
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), stored).Do)
	var store fullStore
	store.full.Store(true)
	k.Full = store.look
	m := k.writes("new", "Interviewer", "What shall I build?")
	for range 3 {
		d := k.Handle(t.Context(), m)
		require.Equal(t, inbound.Nak, d.Do)
		require.GreaterOrEqual(t, d.Delay, time.Second)
		require.LessOrEqual(t, d.Delay, time.Minute)
		m = again(m)
	}
	require.Nil(t, k.of("new", events.RecordText))
	k.handled(again(stored))
	require.Equal(t, true, k.variables()["interview_done"])
	store.full.Store(false)
	k.handled(again(m))
	require.NotNil(t, k.of("new", events.RecordText))
}

func TestMessageThatCannotWaitForRoomIsADeadLetter(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	h, _ := k.bounded(func(c *handlers.Config) {
		c.Full = func() (bool, time.Time) { return true, time.Time{} }
		c.DeferralQuota = func(context.Context, string, int) (bool, error) { return false, nil }
	})
	for _, want := range []inbound.Do{inbound.Nak, inbound.Nak, inbound.Ack} { // it has two places
		require.Equal(t, want, h.Handle(t.Context(), k.writes("m1", "Interviewer", "What shall I build?")).Do)
	}
	require.Equal(t, []string{"undeliverable"}, k.deadReasons())
}

func TestMessagesTakeTheSharesOfTheirTenantInTheStore(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.StoreLeft = func() (int64, int64, uint64) { return 100 << 10, 0, 1 }
	of := func(app string, size int) inbound.Do {
		k.seq++
		body, err := events.EncodeMessage(&events.AgentMessage{
			TurnID: events.TurnID{App: app, Chat: "chat"}, ID: strconv.FormatUint(k.seq, 10), Workflow: "WF", Agent: "Interviewer", Content: strings.Repeat("x", size),
		}, time.Now())
		require.NoError(t, err)
		m := k.writes("m", "Interviewer", "x")
		m.Data, m.Subject = body, k.space.In("default", events.KindAgentMessage, app, "WF", "chat")
		return k.Handle(t.Context(), m).Do
	}
	require.Equal(t, inbound.Ack, of("other", 0))
	require.Equal(t, inbound.Ack, of("app", 48<<10))
	require.Equal(t, inbound.Nak, of("app", 40<<10))
	require.Equal(t, inbound.Ack, of("other", 1<<10))
}

func TestDuplicatesOfMessagesTakeNoShareOfTheStore(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.StoreLeft = func() (int64, int64, uint64) { return 20 << 10, 0, 1 }
	for range 100 {
		k.deliver("m1", "Interviewer", "What shall I build?")
	}
}
