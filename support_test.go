package oneturn_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/oneturntest"
)

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// requireDrained waits until every message of the inbound stream is settled: nothing is lost
// and nothing comes back.
func requireDrained(t *testing.T, s *oneturntest.Server) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	}, 20*time.Second, 10*time.Millisecond, "messages are left in the inbound stream")
}
