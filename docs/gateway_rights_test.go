package docs_test

import (
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// withGateway starts a server and a worker that has ended a turn with a large payload and asks a question in chat c1.
func withGateway(t *testing.T) (s *secured, nc *nats.Conn, denied *denials, blob events.Blob) {
	t.Helper()
	s = newSecured(t)
	write(t, s.dir, "workflows/Notes/oneturn.yaml", securedManifest)
	write(t, s.dir, "workflows/Notes/tools.py", securedTools)
	s.run("provisioner", "provision")
	w := launch(t, command(t, s.dir, "worker", s.flags("worker", "--workflows", "workflows", "--http", "off", "--soft-stop", "1s")...), "is ready")
	t.Cleanup(func() { w.end(syscall.SIGTERM) })
	publisher, _ := s.connect("publisher")
	c, err := oneturn.NewClient(publisher, oneturn.ClientOptions{})
	require.NoError(t, err)
	require.True(t, do(t, c, note("c1", "t1", "Filer", "Note", map[string]any{"text": "many"})).Success)
	r := do(t, c, note("c1", "t2", "Printer", "Note2", map[string]any{"text": "x"}))
	blob, ok := events.BlobOf(r.Payload)
	require.True(t, ok)
	_, err = c.Publish(t.Context(), note("c1", "asks", "Asker", "Note3", map[string]any{"text": "may I?"}))
	require.NoError(t, err)
	nc, denied = s.connect("gateway")
	return s, nc, denied, blob
}

// TestGatewayWorksWithThePermissionsThatThePageGivesIt goes every way in which a gateway reads and publishes.
func TestGatewayWorksWithThePermissionsThatThePageGivesIt(t *testing.T) {
	t.Parallel()
	_, nc, denied, blob := withGateway(t)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stored, err := nc.SubscribeSync(space.EventsPrefix() + ".>")
	require.NoError(t, err)
	live, err := nc.SubscribeSync(space.LiveEvents())
	require.NoError(t, err)

	// The journal: records, direct reads and a consumer that follows it.
	kv, err := kvstore.Open(nc, space)
	require.NoError(t, err)
	t.Cleanup(kv.Close)
	reader := query.New(nc, space, kv, searchbudget.New(nc, nc))
	page, err := reader.ChatEvents(t.Context(), "acme", "c1", 0)
	require.NoError(t, err)
	require.NotEmpty(t, page.Records)
	records := 0
	require.NoError(t, jsapi.Each(t.Context(), nc, space.TurnsStream(), space.JournalSubject(subjects.PublicRecords()), func(*jetstream.RawStreamMsg) { records++ }))
	require.Positive(t, records)
	consumer, err := js.OrderedConsumer(t.Context(), space.TurnsStream(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{space.JournalSubject(subjects.PublicRecords())}})
	require.NoError(t, err)
	m, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(m.Subject(), space.JournalSubject("e.acme.c1.")))
	_, err = consumer.Info(t.Context())
	require.NoError(t, err)
	require.NoError(t, js.DeleteConsumer(t.Context(), space.TurnsStream(), consumer.CachedInfo().Name))
	_, err = jsapi.Info(t.Context(), nc, space.TurnsMirror(), "", 0)
	require.Equal(t, jetstream.JSErrCodeStreamNotFound, jsapi.Code(err), "the request is allowed")

	// Context variables, payloads and workflows.
	contexts, err := variables.New(t.Context(), js, space)
	require.NoError(t, err)
	state, err := contexts.State(t.Context(), "acme", "c1", nil)
	require.NoError(t, err)
	require.NotNil(t, state)
	chunks, err := store.OpenChunks(t.Context(), js, space.BlobsBucket())
	require.NoError(t, err)
	piece, err := chunks.Piece(t.Context(), blob.Blob, 0, 1<<20)
	require.NoError(t, err)
	require.NotEmpty(t, piece.Data)
	list := catalog.NewWorkflows(js, space, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		list.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	require.Eventually(t, func() bool {
		_, err := list.Find(t.Context(), "Notes")
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)

	// What users write: an answer with its result, a message and a cancel request.
	var open []string
	require.Eventually(t, func() bool {
		page, err := reader.Questions(t.Context(), "acme", "c1", 0)
		require.NoError(t, err)
		for _, q := range page.Questions {
			open = append(open, q.Subject)
		}
		return len(open) > 0
	}, 20*time.Second, 10*time.Millisecond)
	result, err := deliver.Answer(t.Context(), js, space, open[0], &events.ToolCallResponse{
		TurnID: events.TurnID{App: "acme", Chat: "c1", Turn: "asks"}, Workflow: "Notes", ToolCallID: "asks/1", Value: map[string]any{"reply": "yes"},
	})
	require.NoError(t, err)
	require.True(t, result.OK(), result.Message)
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	_, err = c.PublishUserMessage(t.Context(), &oneturn.UserMessage{MessageID: oneturn.MessageID{App: "acme", Chat: "c2", Message: "m1"}, Workflow: "Notes", Content: "hello"})
	require.NoError(t, err)
	_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{App: "acme", Chat: "c2", Turn: "later"}, Workflow: "Notes"})
	require.NoError(t, err)
	_, err = stored.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.True(t, live.IsValid())
	require.Empty(t, denied.list())
}

// TestGatewaysAnswerEachOther on subjects that no other role has.
func TestGatewaysAnswerEachOther(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	one, deniedOne := s.connect("gateway")
	two, deniedTwo := s.connect("gateway")
	_, err := one.Subscribe("oneturn.gateway.>", func(m *nats.Msg) { _ = m.Respond([]byte("here")) })
	require.NoError(t, err)
	require.NoError(t, one.Flush())
	m, err := two.Request("oneturn.gateway.runs.r1", nil, 10*time.Second)
	require.NoError(t, err)
	require.Equal(t, "here", string(m.Data))
	require.Empty(t, deniedOne.list())
	require.Empty(t, deniedTwo.list())
}

// H16: TestGatewayMayNotDoMoreThanThePageDocuments: it creates no record, and reads no stream that it does not show.
func TestGatewayMayNotDoMoreThanThePageDocuments(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.run("provisioner", "provision")
	nc, denied := s.connect("gateway")
	denies(t, nc, denied, func(subject string) error { return nc.Publish(subject, []byte("{}")) },
		"$KV.ONETURN_TURNS.e.acme.c.0-t.0.tool_response", "$KV.ONETURN_CONTEXT.acme.c", "$KV.ONETURN_WORKFLOWS.x.default", "$KV.ONETURN_LIMITS.x", "$O.ONETURN_BLOBS.C.x",
		"oneturn.in.default.structured_output_ready.acme.W.c", "oneturn.in.default.agent_message.acme.W.c", "oneturn.in.default.plan_ready.acme.W.c",
		"oneturn.in.default.retry.acme.W.c", "oneturn.in.default.resume.acme.W.c", "oneturn.in.default.expire.acme.W.c", "oneturn.in.default.deferred_response.acme.W.c",
		"oneturn.in.nopool.user_message.acme.W.c", "oneturn.events.acme.c.0-t.0.tool_call", "oneturn.live.acme.c.x", "oneturn.verdict.acme.x", "oneturn.dead.acme.cancel",
		"oneturn.timer.x", "oneturn.api.acme.answer", "$SRV.PING", "_INBOX_worker.x", "_INBOX.x",
		"$JS.API.STREAM.MSG.GET.ONETURN_IN", "$JS.API.STREAM.MSG.GET.ONETURN_DEAD", "$JS.API.STREAM.MSG.GET.ONETURN_TIMERS", "$JS.API.DIRECT.GET.KV_ONETURN_LIMITS.x",
		"$JS.API.STREAM.INFO.ONETURN_IN", "$JS.API.STREAM.NAMES", "$JS.API.INFO",
		"$JS.API.CONSUMER.CREATE.ONETURN_IN.x", "$JS.API.CONSUMER.CREATE.OBJ_ONETURN_BLOBS.x", "$JS.API.CONSUMER.MSG.NEXT.ONETURN_IN.workers-default", "$JS.ACK.ONETURN_IN.workers-default.x",
		"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.UPDATE.KV_ONETURN_TURNS", "$JS.API.STREAM.DELETE.KV_ONETURN_TURNS", "$JS.API.STREAM.PURGE.KV_ONETURN_TURNS",
		"$JS.API.STREAM.MSG.DELETE.KV_ONETURN_TURNS", "$JS.API.STREAM.PURGE.OBJ_ONETURN_BLOBS",
	)
	denies(t, nc, denied, func(subject string) error {
		_, err := nc.SubscribeSync(subject)
		return err
	}, ">", "_INBOX.>", "_INBOX_worker.>", "_INBOX_worker_tools.>", "oneturn.in.>", "oneturn.api.*.*", "oneturn.dead.>", "$KV.>", "$JS.>", "$SRV.>")
}
