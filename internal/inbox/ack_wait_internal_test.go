package inbox

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestSmallerOfTheLastTwoAckWaitsCounts(t *testing.T) {
	t.Parallel()
	in, err := New(&nats.Conn{}, Options{AckWait: 30 * time.Second})
	require.NoError(t, err)
	for _, step := range []struct{ read, counts time.Duration }{
		{30 * time.Second, 30 * time.Second},
		{2 * time.Second, 2 * time.Second},
		{time.Minute, 2 * time.Second},
		{time.Minute, time.Minute},
		{0, time.Minute}, // a consumer always has one
	} {
		in.setConfig(jetstream.ConsumerConfig{AckWait: step.read})
		require.Equal(t, step.counts, in.ackWait())
	}
}
