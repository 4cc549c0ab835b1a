package docs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/store"
)

// TestEveryRoleWorksWithThePermissionsThatThePageGivesIt goes every way that needs a right:
// provisioning, turns with context and blobs, a takeover after a kill, a cancel, a conflict, a
// dead letter, drain, reading, and the operator's commands.
func TestEveryRoleWorksWithThePermissionsThatThePageGivesIt(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	write(t, s.dir, "workflows/Notes/oneturn.yaml", securedManifest)
	write(t, s.dir, "workflows/Notes/tools.py", securedTools)
	s.run("provisioner", "provision", "--ack-wait", "1s")
	s.run("provisioner", "provision")
	s.run("provisioner", "provision", "--ack-wait", "1s")

	write(t, s.dir, "secret-keys", secrets.NewKey())
	start := func() *process {
		args := s.flags("worker", "--workflows", "workflows", "--http", "off", "--log-level", "debug", "--soft-stop", "1s", "--park-after", "100ms",
			"--secret-keys", "secret-keys")
		return launch(t, command(t, s.dir, "worker", args...), "is ready")
	}
	first := start()
	nc, denied := s.connect("publisher")
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	require.True(t, do(t, c, note("c1", "t1", "Filer", "Note", map[string]any{"text": "many"})).Success)
	r := do(t, c, note("c1", "t2", "Printer", "Note2", map[string]any{"text": "x"}))
	s.requireFetched(r.Payload)
	s.requireInspected()

	large := note("c1", "large", "Printer", "Note2", map[string]any{"text": strings.Repeat("x", 300_000)})
	require.True(t, do(t, c, large).Success)

	slow := note("c2", "slow", "Filer", "Note", map[string]any{"text": "slow", "seconds": json.Number("1.5")})
	_, err = c.Publish(t.Context(), slow)
	require.NoError(t, err)
	reader, deniedReader := s.connect("reader")
	require.Eventually(t, func() bool { return kinds(t, reader, "c2")["tool_call"] == 1 }, 10*time.Second, 10*time.Millisecond)
	first.end(syscall.SIGKILL)
	second := start()
	require.True(t, do(t, c, slow).Success)
	require.True(t, do(t, c, large).Success) // its blob is stored again, by a worker that does not know it

	long := note("c3", "long", "Filer", "Note", map[string]any{"text": "long", "seconds": json.Number("60")})
	_, err = c.Publish(t.Context(), long)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return kinds(t, reader, "c3")["tool_call"] == 1 }, 10*time.Second, 10*time.Millisecond)
	_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: long.TurnID, Workflow: long.Workflow})
	require.NoError(t, err)
	require.Equal(t, events.CodeCancelled, do(t, c, long).Code)

	s.requireQuestions(c, reader)

	conflicts, err := reader.SubscribeSync("oneturn.live.acme.>")
	require.NoError(t, err)
	seen, err := reader.SubscribeSync("oneturn.events.acme.>")
	require.NoError(t, err)
	require.NoError(t, reader.Flush())
	_, err = c.Publish(t.Context(), note("c1", "t1", "Filer", "Note", map[string]any{"text": "other"}))
	require.NoError(t, err)
	_, err = conflicts.NextMsg(20 * time.Second)
	require.NoError(t, err)
	require.True(t, do(t, c, note("c1", "t4", "Filer", "Note", map[string]any{"text": "seen"})).Success)
	_, err = seen.NextMsg(20 * time.Second)
	require.NoError(t, err)
	require.Contains(t, s.run("operator", "doctor", "--ack-wait", "1s"), "1 worker answered")
	s.run("repairer", "ls", "--open")
	require.Contains(t, s.run("repairer", "ls"), "c1")
	require.Contains(t, s.run("operator", "show", "c2", "slow", "--app", "acme"), "takeover")
	require.Contains(t, s.run("operator", "show", "c1", "--app", "acme"), "context variables that were set:")
	operator, deniedOperator := s.connect("operator")
	js, err := jetstream.New(operator)
	require.NoError(t, err)
	dead, err := js.Stream(t.Context(), "ONETURN_DEAD")
	require.NoError(t, err)
	m, err := dead.GetLastMsgForSubject(t.Context(), "oneturn.dead.acme.>")
	require.NoError(t, err)
	require.Equal(t, "turn_conflict", m.Header.Get(deadletter.HeaderReason))
	require.Contains(t, s.run("repairer", "dead", "ls"), "turn_conflict")
	require.Contains(t, s.run("repairer", "dead", "redrive", "--all", "--new-run", "r"), "redriven")
	s.run("repairer", "repair")
	again := note("c1", "t1", "Filer", "Note", map[string]any{"text": "other"})
	again.Run = "r"
	require.True(t, do(t, c, again).Success)

	second.end(syscall.SIGTERM)
	require.NotContains(t, strings.ToLower(strings.ReplaceAll(second.stderr.String(), s.dir, "")), "permission")
	require.Empty(t, denied.list())
	require.Empty(t, deniedReader.list())
	require.Empty(t, deniedOperator.list())
}

// requireQuestions has a question answered while its turn is parked, and another one expire.
func (s *secured) requireQuestions(c *oneturn.Client, reader *nats.Conn) {
	t := s.t
	t.Helper()
	asks := note("c4", "asks", "Asker", "Note3", map[string]any{"text": "may I?"})
	_, err := c.Publish(t.Context(), asks)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return kinds(t, reader, "c4")["ask"] == 1 }, 10*time.Second, 10*time.Millisecond)
	answer := oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "c4", ToolCallID: "asks/1"}, Workflow: asks.Workflow, Value: map[string]any{"reply": "yes"}}
	v, err := c.Answer(t.Context(), &answer)
	require.NoError(t, err)
	require.True(t, v.OK(), v.Message)
	require.True(t, do(t, c, asks).Success)
	v, err = c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "c4", ToolCallID: "asks/1"}, Value: "no"}) // by way of the request API
	require.NoError(t, err)
	require.Equal(t, events.AnswerConflict, v.Code)
	s.requireSecret(c)
	s.requireWaits(c, reader)
	expires := note("c4", "expires", "Asker", "Note3", map[string]any{"text": "now?", "seconds": json.Number("0.5")})
	require.False(t, do(t, c, expires).Success)
}

// requireSecret has a secret answered, and its message erased.
func (s *secured) requireSecret(c *oneturn.Client) {
	t := s.t
	t.Helper()
	asks := note("c6", "secret", "Asker", "Note3", map[string]any{"text": "password?"})
	_, err := c.Publish(t.Context(), asks)
	require.NoError(t, err)
	var v *events.AnswerResult
	require.Eventually(t, func() bool {
		v, err = c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "c6", ToolCallID: "secret/1"}, Workflow: asks.Workflow, Value: map[string]any{"reply": "swordfish"}})
		return err == nil && v.OK()
	}, 10*time.Second, 10*time.Millisecond, "%v", v)
	r := do(t, c, asks)
	require.True(t, r.Success, r.Content)
	require.Equal(t, redact.Replacement, r.Payload)
}

// requireWaits has open questions listed, answered by the request API, and ended by an operator.
func (s *secured) requireWaits(c *oneturn.Client, reader *nats.Conn) {
	t := s.t
	t.Helper()
	for _, key := range []string{"w1", "w2", "w3"} {
		_, err := c.Publish(t.Context(), note("c5", key, "Asker", "Note3", map[string]any{"text": "may I?"}))
		require.NoError(t, err)
	}
	readers, err := oneturn.NewClient(reader, oneturn.ClientOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		open, err := readers.Questions(t.Context(), oneturn.QuestionFilter{App: "acme", Chat: "c5"})
		return err == nil && len(open.Questions) == 3
	}, 10*time.Second, 10*time.Millisecond)
	require.Contains(t, s.run("repairer", "questions", "ls", "--app", "acme"), "w1/1")
	s.run("operator", "questions", "show", "w1/1")
	require.Contains(t, s.run("repairer", "questions", "expire", "w1/1"), "is expired")
	require.Contains(t, s.run("repairer", "questions", "cancel", "w2"), "is cancelled")
	nc, denied := s.connect("publisher")
	m, err := nc.Request("oneturn.api.acme.answer", []byte(`{"chat_id":"c5","tool_call_id":"w3/1","value":{"reply":"yes"}}`), 10*time.Second)
	require.NoError(t, err)
	v, err := events.DecodeAnswerResult(m.Data)
	require.NoError(t, err, "%s %s", m.Header, m.Data)
	require.True(t, v.OK(), v.Message)
	nc.Close()
	require.Empty(t, denied.list())
}

// requireFetched gets a large payload as the role for it, which has no right on JetStream.
func (s *secured) requireFetched(payload any) {
	s.t.Helper()
	blob, ok := events.BlobOf(payload)
	require.True(s.t, ok)
	nc, denied := s.connect("fetcher")
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(s.t, err)
	data, err := c.Blob(s.t.Context(), oneturn.BlobID{App: "acme", Blob: blob})
	require.NoError(s.t, err)
	require.Greater(s.t, len(data), store.InlineLimit)
	nc.Close()
	require.Empty(s.t, denied.list())
}

// requireInspected gets context variables as the role for it, which has no right on JetStream.
func (s *secured) requireInspected() {
	s.t.Helper()
	nc, denied := s.connect("inspector")
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(s.t, err)
	found, err := c.ContextVariables(s.t.Context(), oneturn.ChatID{App: "acme", Chat: "c1"})
	require.NoError(s.t, err)
	require.NotEmpty(s.t, found.Set)
	nc.Close()
	require.Empty(s.t, denied.list())
}

// kinds asks the request API as any reader and counts the records of a chat by kind.
func kinds(t *testing.T, nc *nats.Conn, chat string) map[string]int {
	t.Helper()
	m, err := nc.Request("oneturn.api.acme.history", []byte(`{"chat_id":"`+chat+`"}`), 5*time.Second)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	require.NoError(t, err)
	var page api.Page
	require.NoError(t, json.Unmarshal(m.Data, &page))
	found := map[string]int{}
	for _, r := range page.Records {
		found[r.Kind]++
	}
	return found
}

// H16: TestNoRoleMayDoMoreThanThePageDocuments tries what each role has no right to.
func TestNoRoleMayDoMoreThanThePageDocuments(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	s.run("provisioner", "provision")
	for role, subjects := range map[string][]string{
		"publisher": {
			"oneturn.in.default.structured_output_ready.evil.W.c", "oneturn.in.default.plan_ready.evil.W.c", "oneturn.events.acme.c.t.0.tool_response",
			"$KV.ONETURN_TURNS.e.acme.c.t.0.tool_response", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS", "oneturn.api.evil.turn",
			"$JS.API.STREAM.DELETE.ONETURN_IN", "oneturn.dead.acme.cancel",
			"oneturn.in.default.expire.acme.W.c", "oneturn.in.default.resume.acme.W.c", "oneturn.in.gpu.cancel.acme.W.c",
		},
		"reader": {
			"oneturn.in.default.structured_output_ready.acme.W.c", "oneturn.api.evil.history", "oneturn.live.acme.c.x", "oneturn.api.acme.answer", "oneturn.api.acme.context",
			"oneturn.events.acme.c.t.0.tool_response", "$KV.ONETURN_TURNS.e.acme.c.t.0.tool_response", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS",
		},
		"worker": {
			"oneturn.in.default.x.acme.W.c", "oneturn.in.default.cancel.acme.W.c", "oneturn.events.acme.c.t.0.tool_response",
			"$JS.API.STREAM.DELETE.ONETURN_IN", "$JS.API.STREAM.PURGE.KV_ONETURN_TURNS", "$JS.API.STREAM.UPDATE.KV_ONETURN_TURNS",
			"$JS.API.CONSUMER.CREATE.ONETURN_IN", "$JS.API.CONSUMER.DELETE.ONETURN_IN.workers-default", "_INBOX_reader.x",
		},
		"fetcher": {
			"oneturn.api.evil.blob", "$JS.API.DIRECT.GET.OBJ_ONETURN_BLOBS.$O.ONETURN_BLOBS.C.x", "$JS.API.CONSUMER.CREATE.OBJ_ONETURN_BLOBS", "$JS.API.STREAM.INFO.OBJ_ONETURN_BLOBS",
			"$O.ONETURN_BLOBS.C.x", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS", "oneturn.api.acme.turn", "$JS.API.STREAM.PURGE.OBJ_ONETURN_BLOBS",
		},
		"inspector": {
			"oneturn.api.evil.context", "oneturn.api.acme.history", "oneturn.api.acme.blob", "$JS.API.STREAM.MSG.GET.KV_ONETURN_CONTEXT",
			"$KV.ONETURN_CONTEXT.acme.c", "$JS.API.STREAM.MSG.GET.KV_ONETURN_TURNS",
		},
		"operator": {
			"oneturn.in.default.cancel.acme.W.c", "$KV.ONETURN_TURNS.e.acme.c.t.0.tool_response", "$JS.API.STREAM.PURGE.ONETURN_DEAD",
			"$JS.API.CONSUMER.MSG.NEXT.ONETURN_IN.workers-default", "$JS.API.STREAM.DELETE.ONETURN_DEAD",
		},
		"provisioner": {"oneturn.in.default.cancel.acme.W.c", "$KV.ONETURN_TURNS.e.acme.c.t.0.tool_response"},
	} {
		nc, denied := s.connect(role)
		for i, subject := range subjects {
			require.NoError(t, nc.Publish(subject, []byte("{}")))
			require.NoError(t, nc.Flush())
			require.Eventually(t, func() bool { return len(denied.list()) > i }, 5*time.Second, 5*time.Millisecond, "%s may publish to %s", role, subject)
		}
		for _, subject := range []string{">", "_INBOX.>", "_INBOX_other.>", "oneturn.events.evil.>", "oneturn.in.>"} {
			before := len(denied.list())
			_, err := nc.SubscribeSync(subject)
			require.NoError(t, err)
			require.NoError(t, nc.Flush())
			require.Eventually(t, func() bool { return len(denied.list()) > before }, 5*time.Second, 5*time.Millisecond, "%s may subscribe to %s", role, subject)
		}
	}
}
