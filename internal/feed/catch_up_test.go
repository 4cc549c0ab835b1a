package feed_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// A client that has seen an event at one gateway finds it at another one which has not routed it yet.
func TestFollowerThatBeginsAfterCatchUpHasAtItsBoundaryWhatWasStoredBefore(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	j := newJournal(t, s)
	held, free := make(chan struct{}), make(chan struct{})
	f := j.open(s, feed.Options{Damaged: func(string, uint64) {
		close(held)
		<-free
	}})
	other := f.Follow("app", "other", 0)
	defer other.Close()
	require.Eventually(t, func() bool { return f.Ready() == nil }, 10*time.Second, time.Millisecond)
	damaged := idempotency.Record{
		Key: subjects.TurnKey("app", "other", "", "x").Public(events.RecordCall), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}, Data: []byte("{"),
	}
	_, err := j.store.Create(t.Context(), damaged)
	require.NoError(t, err)
	<-held // the feed routes nothing from here on
	j.write("app", "chat", "1")
	j.private("app", "chat", "1")

	caught := make(chan error, 1)
	go func() { caught <- f.CatchUp(t.Context()) }()
	behind := f.Follow("app", "chat", 0)
	defer behind.Close()
	item, err := behind.Next(t.Context())
	require.NoError(t, err)
	require.NotNil(t, item.Boundary, "without it the record comes after the boundary")
	select {
	case <-caught:
		require.Fail(t, "the feed has not caught up")
	default:
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.CatchUp(ended), context.Canceled)
	close(free)
	require.NoError(t, <-caught)
	w := f.Follow("app", "chat", 0)
	defer w.Close()
	item, err = w.Next(t.Context())
	require.NoError(t, err)
	require.NotNil(t, item.Event)
	require.True(t, item.Event.Replay)
}
