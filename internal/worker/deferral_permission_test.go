package worker_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// The rights themselves are taken away in package docs.
func TestCheckOfRightsStoresNothing(t *testing.T) {
	t.Parallel()
	s := server(t)
	nc := s.Connect()
	asked, err := nc.SubscribeSync("oneturn.in.default.deferred_response.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	w := start(t, s, greeter())
	_, err = asked.NextMsg(10 * time.Second)
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	publish(t, client(t, s), turn("first", greeting{Name: "Ada"})) // stored after what the worker has sent
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, info.State.LastSeq, "the turn alone was stored")
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 10*time.Millisecond)
}
