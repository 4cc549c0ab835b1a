package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/deadletter"
)

// F07: see docs/faults.md.
func TestKeyReuseWithOtherDataIsNeverRunAndBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c, nc := client(t, s), s.Connect()
	dead, err := nc.SubscribeSync("oneturn.dead.>")
	require.NoError(t, err)
	live, err := nc.SubscribeSync("oneturn.live.app.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	publish(t, c, turn("t1", map[string]any{"name": "Ada"}))
	require.Equal(t, "Hello, Ada!", await(t, c, turn("t1", nil).TurnID).Content)
	publish(t, c, turn("t1", map[string]any{"name": "Bob"}))
	m, err := dead.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "turn_conflict", m.Header.Get(deadletter.HeaderReason))
	require.Contains(t, string(m.Data), "Bob")
	m, err = live.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"chat.turn_conflict"`)
	require.Equal(t, "Hello, Ada!", await(t, c, turn("t1", nil).TurnID).Content)
}

// F22: nothing is dropped silently.
func TestWhatCannotBeHandledIsADeadLetterWithItsBytes(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	dead, err := js.OrderedConsumer(t.Context(), "ONETURN_DEAD", jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	good := `{"kind":"structured_output_ready","agent":"Greeter","model_name":"Greeting","structured_data":{"name":"x"},` +
		`"auto_tool_mode":true,"turn_idempotency_key":"t","context":{"app_id":"app","chat_id":"chat","workflow_name":"Hello"}}`
	const subject = "oneturn.in.default.structured_output_ready.app.Hello.chat"
	for _, c := range []struct{ name, subject, body, reason string }{
		{"not JSON", subject, "nope", "undecodable"},
		{"empty", subject, "", "undecodable"},
		{"not an object", subject, "[]", "undecodable"},
		{"duplicate key", subject, `{"kind":"a","kind":"b"}`, "undecodable"},
		{"unknown kind", subject, `{"kind":"surprise"}`, "unknown_kind"},
		{"no chat", subject, strings.Replace(good, `"chat_id":"chat",`, "", 1), "missing_field"},
		{"other tenant's subject", strings.Replace(subject, ".app.", ".evil.", 1), good, "subject_mismatch"},
		{"other chat's subject", strings.Replace(subject, ".chat", ".other", 1), good, "subject_mismatch"},
		{"other kind's subject", strings.Replace(subject, "structured_output_ready", "cancel", 1), good, "subject_mismatch"},
		{"plan on the subject of outputs", subject, strings.Replace(good, "structured_output_ready", "plan_ready", 1), "subject_mismatch"},
		{"output on the subject of plans", strings.Replace(subject, "structured_output_ready", "plan_ready", 1), good, "subject_mismatch"},
		{"plan without chat", strings.Replace(subject, "structured_output_ready", "plan_ready", 1), `{"plan":{},"turn_idempotency_key":"t"}`, "missing_field"},
		{"plan that is not JSON", strings.Replace(subject, "structured_output_ready", "plan_ready", 1), `{"plan":`, "undecodable"},
		{"short subject", "oneturn.in.default.x", good, "subject_mismatch"},
	} {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: c.subject, Data: []byte(c.body), Header: nats.Header{"X-Mine": {"kept"}}})
		require.NoError(t, err, c.name)
		m, err := dead.Next(jetstream.FetchMaxWait(10 * time.Second))
		require.NoError(t, err, c.name)
		require.Equal(t, c.reason, m.Headers().Get(deadletter.HeaderReason), c.name)
		require.Equal(t, c.body, string(m.Data()), c.name)
		require.Equal(t, c.subject, m.Headers().Get(deadletter.HeaderSubject), c.name)
		require.Equal(t, "kept", m.Headers().Get("X-Mine"), c.name)
		require.NotEmpty(t, m.Headers().Get(deadletter.HeaderError), c.name)
	}
}
