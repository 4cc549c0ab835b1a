package sweep_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
)

// A server that lacks the message and everything after it may be a leader that was replaced before the
// message was stored.
func TestLeaseIsGoneOnlyForAServerThatHasSeenItsMessage(t *testing.T) {
	t.Parallel()
	k := newTestSweep(t)
	held := sweep.ConfirmLeaseHeld(k.JS, k.Space)
	stream, err := k.JS.Stream(t.Context(), k.Space.InStream())
	require.NoError(t, err)
	put := func() idempotency.Lease {
		ack, err := k.JS.Publish(t.Context(), k.Space.In("default", "structured_output_ready", "app", "WF", "chat"), []byte(`{}`))
		require.NoError(t, err)
		return idempotency.Lease{Stream: k.Space.InStream(), Seq: ack.Sequence, Delivery: 1}
	}
	look := func(l idempotency.Lease, want bool) time.Duration {
		begun := time.Now()
		got, err := held(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, want, got)
		return time.Since(begun)
	}
	first, last := put(), put()
	look(first, true)
	require.NoError(t, stream.DeleteMsg(t.Context(), first.Seq))
	look(first, false)
	look(last, true)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(">")))
	look(last, false)

	next := last
	next.Seq++
	require.GreaterOrEqual(t, look(next, false), time.Second, "it is looked for again")
	stored := make(chan idempotency.Lease, 1)
	timer := time.AfterFunc(100*time.Millisecond, func() { stored <- put() })
	defer timer.Stop()
	look(next, true)
	require.Equal(t, next, <-stored)
	look(idempotency.Lease{Stream: "ANOTHER", Seq: 1, Delivery: 1}, false)
}
