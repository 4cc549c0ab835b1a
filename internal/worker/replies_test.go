package worker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
)

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var verbs = []string{api.VerbTurn, api.VerbHistory, api.VerbQuestions, api.VerbAnswer, api.VerbContext}

// asked publishes a request of each verb for each reply subject. What is sent there arrives in
// the channel; the refused replies would have arrived by then.
func asked(t *testing.T, nc *nats.Conn, replies ...string) <-chan *nats.Msg {
	t.Helper()
	body := []byte(`{"chat_id":"chat 1","turn":"t"}`)
	got := make(chan *nats.Msg, len(verbs)*len(replies))
	for _, reply := range replies {
		sub, err := nc.ChanSubscribe(reply, got)
		require.NoError(t, err)
		t.Cleanup(func() { _ = sub.Unsubscribe() })
		for _, verb := range verbs {
			require.NoError(t, nc.PublishRequest("oneturn.api.app."+verb, reply, body))
		}
	}
	for _, verb := range verbs {
		_, err := nc.Request("oneturn.api.app."+verb, body, 5*time.Second)
		require.NoError(t, err)
	}
	return got
}

func requireReplies(t *testing.T, got <-chan *nats.Msg, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(got) == n }, 5*time.Second, time.Millisecond)
}

func TestRequestsAreAnsweredOnInboxesOnly(t *testing.T) {
	t.Parallel()
	s := server(t)
	log := &lockedBuffer{}
	config, registry := greeter(), prometheus.NewRegistry()
	config.Logger, config.Registry = slog.New(slog.NewTextHandler(log, nil)), registry
	start(t, s, config)
	c := client(t, s)
	one := turn("t", map[string]any{"name": "Ada"})
	publish(t, c, one)
	await(t, c, one.TurnID)
	require.Empty(t, asked(t, s.Connect(), "svc.tools.wire_transfer", "prod.in.default.cancel.app.Hello.chat", "_INBOXES.x", "_INBOX_x"))
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP oneturn_replies_refused_total Replies to requests and answers that were not sent: the subject that they name is not an inbox.
# TYPE oneturn_replies_refused_total counter
oneturn_replies_refused_total 20
`), "oneturn_replies_refused_total"))
	require.Equal(t, 1, strings.Count(log.String(), "reply subject not allowed"), "a flood of requests does not flood the log")
	require.Contains(t, log.String(), "reply=svc.tools.wire_transfer")
	requireReplies(t, asked(t, s.Connect(), "_INBOX_reader.x"), len(verbs))
}

func TestInboxesWithAConfiguredPrefixGetReplies(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.ReplyPrefixes = []string{"replies", "_INBOX"}
	w := start(t, s, config)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, time.Millisecond)
	requireReplies(t, asked(t, s.Connect(), "replies.x", "replies_reader.x"), 2*len(verbs))
	config.ReplyPrefixes = []string{"oneturn.in"}
	_, err := oneturn.NewWorker(s.Connect(), config)
	require.ErrorContains(t, err, `reply prefix "oneturn.in"`)
}
