package gateway_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/subjects"
)

// stuck is a log that takes no line before it is freed. A gateway that reports a damaged record routes nothing meanwhile.
type stuck struct {
	once       sync.Once
	held, free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.held) })
	<-s.free
	return len(p), nil
}

// A client may have more of the chat from another gateway than one that receives the journal late: a run that began with less would
// remove it, or send it a second time.
func TestRunBeginsWithAllThatIsStoredHoweverLateItsGatewayReceivesIt(t *testing.T) {
	t.Parallel()
	log := &stuck{held: make(chan struct{}), free: make(chan struct{})}
	g := open(t, quick, func(o *gateway.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
		o.KeepAlive = 100 * time.Millisecond
	})
	free := sync.OnceFunc(func() { close(log.free) })
	t.Cleanup(free)
	harness.StartWorker(t, g.server, shop())
	g.lists(g.http.URL)
	g.socket("ada", "other", "").until(boundaryType)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	damaged := nats.NewMsg(space.JournalSubject(subjects.MessageKey("app", "other", "", "m").Public(events.RecordText)))
	damaged.Header = nats.Header{idempotency.HeaderOwner: {"w"}, idempotency.HeaderNonce: {"n"}, idempotency.HeaderEpoch: {"1"}}
	damaged.Data = []byte("[1")
	require.NoError(t, g.nc.PublishMsg(damaged))
	<-log.held
	g.texts("c", 2, 10)

	run := g.run(g.http.URL, "ada", "/agui/Shop/connect", input("r", nil))
	for begun, alive := false, 0; alive < 5; { // nothing of the chat is sent
		require.True(t, run.lines.Scan(), "the stream has ended")
		line := run.lines.Text()
		require.NotContains(t, line, string(agui.TypeRunFinished))
		begun = begun || strings.Contains(line, string(agui.TypeRunStarted))
		if begun && strings.HasPrefix(line, ":") {
			alive++
		}
	}
	free()
	messages, _ := run.until(agui.TypeMessagesSnapshot)["messages"].([]any)
	require.Len(t, messages, 2)
}
