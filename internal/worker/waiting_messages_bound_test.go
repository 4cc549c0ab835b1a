package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

// TestDeferredMessagesOfATenantAreBounded: a tenant cannot move more out of the bounded inbound stream than its part of
// what that may hold, however much it publishes.
func TestDeferredMessagesOfATenantAreBounded(t *testing.T) {
	t.Parallel()
	const most, size, n = 4 << 20, 200 << 10, 60
	s := oneturntest.NewServer(t)
	s.Provision(func(o *provision.Options) { o.InMaxBytes = most; o.AckWait = 5 * time.Second })
	places(t, s, 64)
	start(t, s, greeter()) // the usual binding grace of 30 s
	c := client(t, s)
	big := strings.Repeat("x", size)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
	require.NoError(t, err)
	for i := range n {
		one := turn(fmt.Sprint("unknown ", i), map[string]any{"name": big})
		one.App, one.Workflow = "evil", "Nowhere"
		require.Eventually(t, func() bool {
			_, err := c.Publish(t.Context(), one)
			return err == nil
		}, 20*time.Second, 10*time.Millisecond, "it is judged, and makes room")
		info, err := timers.Info(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, info.State.Bytes, uint64(most))
	}
}
