package worker_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

// requireDrained waits until every message of the inbound stream is settled: nothing is lost
// and nothing is redelivered.
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

// responseEvent reads the stored response of a turn, with the fields that [oneturn.Response] does not have.
func responseEvent(t *testing.T, s *oneturntest.Server, id oneturn.TurnID) *events.ToolResponse {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	body, err := json.Marshal(api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn})
	require.NoError(t, err)
	m, err := s.Connect().Request(space.API(id.App, api.VerbTurn), body, 10*time.Second)
	require.NoError(t, err)
	var page api.Page
	require.NoError(t, json.Unmarshal(m.Data, &page))
	for _, r := range page.Records {
		if r.Kind == events.KindToolResponse {
			event, err := events.Parse(r.Event)
			require.NoError(t, err)
			var e events.ToolResponse
			require.NoError(t, event.As(&e))
			return &e
		}
	}
	require.Fail(t, "the turn has no response", "%s", m.Data)
	return nil
}
