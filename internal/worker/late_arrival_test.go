package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// waiting is how many pulls the consumer of the workers has.
func waiting(t *testing.T, s *oneturntest.Server) int {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	return consumer.CachedInfo().NumWaiting
}

// A delivery lies in the buffers of a connection for longer than the ack wait. The server has given the
// message to another worker meanwhile, which runs its unsafe tool. The worker that receives the old
// delivery does not know its workflow; requeueing it would have the server deliver it a third time.
func TestDeliveryThatWasLateOnItsWayTakesNoTurnFromItsNewOwner(t *testing.T) {
	t.Parallel()
	s := server(t)
	proxy, nc := behindProxy(t, s)
	other, err := oneturn.NewWorker(nc, oneturn.Config{Slots: 1, BindingGrace: time.Hour, Tools: []oneturn.Tool{
		oneturn.NewTool("other", func(context.Context, greeting) (string, error) { return "", nil }, oneturn.ToolOptions{Workflow: "Other", Agent: "A", Model: "B"}),
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = other.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool { return other.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return waiting(t, s) == 1 }, 10*time.Second, 5*time.Millisecond)
	proxy.Stall(harness.Down)

	c := client(t, s)
	victim := takes("victim", 6*time.Second)
	publish(t, c, victim)
	require.Eventually(t, func() bool { return underWay(t, s) == 1 }, 10*time.Second, 5*time.Millisecond)
	var owner, third slow
	runOn(t, s.Connect(), owner.config())
	require.Eventually(t, func() bool { return owner.entered.Load() == 1 }, 20*time.Second, time.Millisecond)
	runOn(t, s.Connect(), third.config())
	require.Eventually(t, func() bool { return waiting(t, s) > 0 }, 10*time.Second, 5*time.Millisecond)
	proxy.Heal()
	r := await(t, c, victim.TurnID)
	require.Empty(t, r.Code, "its owner lives and its tool returns: %s", r.Content)
	require.Equal(t, int32(1), owner.entered.Load()+third.entered.Load())
}
