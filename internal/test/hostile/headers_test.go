package hostile_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/deadletter"
)

// TestH14MessageThatLooksLikeAServerStatusIsJustAMessage: the server notifies its clients of deleted consumers and lapsed pulls by empty messages with a Status header. A producer can
// write such a header too; it must not stop the workers.
func TestH14MessageThatLooksLikeAServerStatusIsJustAMessage(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, h := range []nats.Header{
		{"Status": {"409"}, "Description": {"Consumer Deleted"}},
		{"Status": {"100"}, "Description": {"Idle Heartbeat"}},
		{"Status": {"404"}, "Nats-Pending-Messages": {"100000"}},
		{"Status": {"408"}, "Nats-Pending-Messages": {"-100000"}},
		{"Status": {"503"}},
	} {
		l.send("c", h, nil)
		l.letter("undecodable")
	}
	l.goesOn()
	l.drained()
}

// TestH14HeadersOfADeadLetterAreTheSendersButCommandNothing: what the server or a reader would
// obey is left out, and only the worker gives the reason.
func TestH14HeadersOfADeadLetterAreTheSendersButCommandNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.send("c", nats.Header{
		"X-Mine": {"kept"}, "nats-msg-id": {"evil"}, "NATS-Rollup": {"all"},
		"Nats-Msg-Id": {"evil"}, "oneturn-reason": {"evil"}, "Oneturn-Blob": {"evil"}, "Status": {"100"},
	}, nil)
	m := l.letter("undecodable")
	for name, values := range m.Headers() {
		require.NotContains(t, values, "evil", name)
	}
	require.Equal(t, "kept", m.Headers().Get("X-Mine"))
	for _, name := range []string{"NATS-Rollup", "Status", deadletter.HeaderBlob} {
		require.NotContains(t, m.Headers(), name)
	}
	l.drained()
}

// TestH01HeaderBlockOfTheLargestSizeStillBecomesADeadLetter: the dead letter has additional headers next to the ones that fill the limit already.
func TestH01HeaderBlockOfTheLargestSizeStillBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.send("c", nats.Header{"X-Large": {strings.Repeat("x", 64<<10-100)}, "X-Mine": {"kept"}}, []byte("nope"))
	m := l.letter("undecodable")
	require.Equal(t, "nope", string(m.Data()))
	require.Equal(t, []string{"kept", "1"}, []string{m.Headers().Get("X-Mine"), m.Headers().Get(deadletter.HeaderLeftOut)})
	many := nats.Header{"X-Small": {"kept"}}
	for range 3000 {
		many.Add("X-Many", "0123456789")
	}
	l.send("c", many, []byte("nope"))
	require.Equal(t, "nope", string(l.letter("undecodable").Data()))
	l.goesOn()
	l.drained()
}

// TestH01LargestMessageBecomesADeadLetterWithAllItsBytes: they are in the blob that it names.
func TestH01LargestMessageBecomesADeadLetterWithAllItsBytes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	body := []byte(strings.Repeat("x", int(l.nc.MaxPayload())-64))
	l.send("c", nats.Header{"X-Mine": {"kept"}}, body)
	m := l.letter("undecodable")
	require.Empty(t, m.Data())
	require.Equal(t, "oneturn.dead.app.structured_output_ready", m.Subject())
	require.Equal(t, strconv.Itoa(len(body)), m.Headers().Get(deadletter.HeaderSize))
	store, err := l.js.ObjectStore(t.Context(), l.space.BlobsBucket())
	require.NoError(t, err)
	data, err := store.GetBytes(t.Context(), m.Headers().Get(deadletter.HeaderBlob))
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, data), "%d bytes", len(data))
	l.goesOn()
	l.drained()
}
