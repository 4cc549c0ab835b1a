package idempotency_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
)

// TestTurnWithMoreRecordsThanOneReadReturnsCanBeEnded: by its end of life, by a redelivery, and by a
// resume once its message is gone.
func TestTurnWithMoreRecordsThanOneReadReturnsCanBeEnded(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	s := storetest.Open(t, nc, storetest.Bucket(t, nc))
	j := newJournal(s)
	h := owner(t, s, "idempotent")
	var writes errgroup.Group
	writes.SetLimit(256)
	for i := range 10_001 {
		writes.Go(func() error { return j.Show(t.Context(), h, fmt.Sprint("s:", i), []byte(`{}`)) })
	}
	require.NoError(t, writes.Wait())
	_, err := s.Scan(t.Context(), key, nil)
	require.ErrorIs(t, err, idempotency.ErrTooMany)

	held := true
	resume := func(expired bool) idempotency.Decision {
		d, err := j.Resume(t.Context(), idempotency.Resume{
			Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: 99, Delivery: 1}, Expired: func(time.Time) bool { return expired },
			Held: func(context.Context, idempotency.Lease) (bool, error) { return held, nil },
		})
		require.NoError(t, err)
		return d
	}
	require.Equal(t, idempotency.Done, resume(false).Action, "its owner may live")
	require.Equal(t, events.CodeExpired, resume(true).Code)
	held = false
	d := resume(false)
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeTooLarge, d.Code)

	lease := h.Lease
	lease.Delivery++
	d, err = j.Claim(t.Context(), idempotency.Claim{Key: key, Lease: lease, Effect: "idempotent", Event: []byte(`{}`)})
	require.NoError(t, err)
	require.Equal(t, events.CodeTooLarge, d.Code)
	stored, err := j.Finish(t.Context(), d.Hold, []byte(`{}`))
	require.NoError(t, err)
	require.True(t, stored)
	require.Equal(t, idempotency.Done, resume(false).Action)
}
