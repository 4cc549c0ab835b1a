package provision_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/provision"
)

func TestMessagesThatDeadWorkersHeldDoNotKeepTheAckWaitFromBeingLowered(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{AckWait: time.Minute})
	_, err := js.Publish(t.Context(), "oneturn.in.default.cancel.a.b.c", nil)
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	_, err = consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(t, err)
	info, err := consumer.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, info.NumAckPending)
	change := apply(t, js, provision.Options{AckWait: 2 * time.Second})["consumer ONETURN_IN/workers-default"]
	require.Equal(t, []string{"ack_wait 1m0s → 2s"}, change.Details)
}

func TestAckWaitIsRaisedUnderRunningWorkersAndRefusedToBeLowered(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{AckWait: 10 * time.Second})
	consumer, err := js.Consumer(t.Context(), "ONETURN_TIMERS", "timers")
	require.NoError(t, err)
	worker, err := consumer.Consume(func(jetstream.Msg) {})
	require.NoError(t, err)
	defer worker.Stop()
	require.Eventually(t, func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && info.NumWaiting > 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, provision.Updated, apply(t, js, provision.Options{AckWait: 20 * time.Second})["consumer ONETURN_TIMERS/timers"].Action)
	changes, err := provision.Apply(t.Context(), js, plan(t, provision.Options{AckWait: 19 * time.Second, DeadMaxBytes: 2 << 30}))
	require.ErrorIs(t, err, provision.ErrRefused)
	require.ErrorContains(t, err, "ack_wait 20s → 19s: refused: workers run")
	require.ErrorContains(t, err, "keep --ack-wait 20s")
	require.Empty(t, changes, "before anything is changed")
}
