package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// inbound sends bytes to the workers as they are.
func (d *workerServer) inbound(t *testing.T, subject, body string, headers ...string) {
	t.Helper()
	js, err := jetstream.New(d.Connect())
	require.NoError(t, err)
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	_, err = js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
}

// deadLetters waits for n dead letters and returns them, the newest first.
func deadLetters(t *testing.T, s *oneturntest.Server, n int) []deadLetter {
	t.Helper()
	var found []deadLetter
	require.Eventually(t, func() bool {
		found = decode[deadListing](t, s, "dead", "ls").Letters
		return len(found) == n
	}, 10*time.Second, 10*time.Millisecond, "want %d dead letters", n)
	return found
}

func seq(n uint64) string { return strconv.FormatUint(n, 10) }

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestDeadLettersAreListedShownAndDropped(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	require.Equal(t, "no dead letters\n", ok(t, d.Server, "dead", "ls"))
	d.inbound(t, "oneturn.in.default.structured_output_ready.acme.Hello.c", `{"a":"SECRET"`, "Nats-Msg-Id", "m", "traceparent", trace, "Oneturn-Blob", "dead.9.evil")
	deadLetters(t, d.Server, 1)
	d.inbound(t, "oneturn.in.default.nonsense.acme.Hello.c", `{"kind":"nonsense","app_id":"acme"}`)
	found := deadLetters(t, d.Server, 2)
	require.Equal(t, []string{"unknown_kind", "undecodable"}, []string{found[0].Reason, found[1].Reason})
	require.Equal(t, "structured_output_ready", found[1].Kind)
	require.Equal(t, len(`{"a":"SECRET"`), found[1].Bytes)
	require.Positive(t, found[1].Source)
	require.Empty(t, found[1].Blob, "a sender's header names no blob")

	text := ok(t, d.Server, "dead", "ls", "--limit", "1")
	require.Contains(t, text, "unknown_kind")
	require.NotContains(t, text, "undecodable")
	require.Contains(t, text, "larger --limit")
	require.Len(t, decode[deadListing](t, d.Server, "dead", "ls", "--reason", "undecodable").Letters, 1)
	require.Empty(t, decode[deadListing](t, d.Server, "dead", "ls", "--app", "nobody").Letters)

	text = ok(t, d.Server, "dead", "show", seq(found[1].Seq))
	require.Contains(t, text, "invalid JSON")
	require.Contains(t, text, trace)
	require.Contains(t, text, "oneturn.in.default.structured_output_ready.acme.Hello.c")
	require.NotContains(t, text, "SECRET")
	require.Contains(t, ok(t, d.Server, "dead", "show", seq(found[1].Seq), "--payload"), `{"a":"SECRET"`)
	require.JSONEq(t, `{"kind":"nonsense","app_id":"acme"}`, string(decode[deadLetterFacts](t, d.Server, "dead", "show", seq(found[0].Seq), "--payload").Payload))

	code, _, stderr := turnctl(t, d.Server, "dead", "drop", seq(found[0].Seq))
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "--yes")
	require.Contains(t, ok(t, d.Server, "dead", "drop", seq(found[0].Seq), "--yes"), "dropped")
	deadLetters(t, d.Server, 1)
	code, stdout, _ := turnctl(t, d.Server, "dead", "drop", seq(found[0].Seq), "--yes")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, "gone")
}

func TestRedrivenMessageThatFailsAgainIsADeadLetterAgain(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	const subject = "oneturn.in.default.structured_output_ready.acme.Hello.c"
	d.inbound(t, subject, `{"broken`, "traceparent", trace, "Nats-Msg-Id", "m")
	first := deadLetters(t, d.Server, 1)[0]
	code, stdout, _ := turnctl(t, d.Server, "dead", "redrive", seq(first.Seq))
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, "--force")
	require.Equal(t, first.Seq, deadLetters(t, d.Server, 1)[0].Seq, "it stays")
	out := decode[handledDeadLetters](t, d.Server, "dead", "redrive", seq(first.Seq), "--force")
	require.Equal(t, handledRedriven, out.Letters[0].State)
	require.Equal(t, subject, out.Letters[0].Subject)
	var second deadLetter
	require.Eventually(t, func() bool {
		found := decode[deadListing](t, d.Server, "dead", "ls").Letters
		if len(found) == 1 {
			second = found[0]
		}
		return second.Seq > first.Seq
	}, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, out.Letters[0].InSeq, second.Source)
	facts := decode[deadLetterFacts](t, d.Server, "dead", "show", seq(second.Seq), "--payload")
	require.Equal(t, trace, facts.Headers.Get("traceparent"))
	require.NotEmpty(t, facts.Base64)

	code, stdout, _ = turnctl(t, d.Server, "dead", "redrive", seq(first.Seq))
	require.Equal(t, cli.Failed, code, "the first dead letter is gone")
	require.Contains(t, stdout, "gone")
	deadLetters(t, d.Server, 1)
}

func TestConflictRunsAsASeparateTurnWithANewRun(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	id := turnID("c", "", "t")
	d.publish(t, id, "Ada")
	turn := &oneturn.Turn{TurnID: id, Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: map[string]any{"name": "Grace"}}
	_, err := d.client.Publish(t.Context(), turn)
	require.NoError(t, err)
	conflict := deadLetters(t, d.Server, 1)[0]
	require.Equal(t, "turn_conflict", conflict.Reason)
	require.Equal(t, []string{"c", "t"}, []string{conflict.Chat, conflict.Turn})
	require.Contains(t, ok(t, d.Server, "dead", "redrive", "--all"), " skipped: its turn key belongs to other data")

	// Killed between the publish and the deletion: the dead letter is there, and redriven again.
	s := &server{nc: d.Connect(), space: mustSpace(t), timeout: 5 * time.Second}
	s.js, err = jetstream.New(s.nc)
	require.NoError(t, err)
	stream, err := s.deadStream(t.Context())
	require.NoError(t, err)
	_, err = s.publishDeadLetter(t.Context(), stream, conflict.Seq, &redriveSettings{newRun: "again"})
	require.NoError(t, err)
	require.Contains(t, ok(t, d.Server, "dead", "redrive", seq(conflict.Seq), "--new-run", "again"), "redriven as message")

	fresh := id
	fresh.Run = "again"
	r, err := d.client.Await(t.Context(), fresh)
	require.NoError(t, err)
	require.Equal(t, "Hello, Grace!", object(t, r.Payload)["message"])
	deadLetters(t, d.Server, 0)
	require.Eventually(t, func() bool { return inWork(t, s) == 0 }, 10*time.Second, 10*time.Millisecond)
	close(d.entered)
	var names []string
	for name := range d.entered {
		names = append(names, name)
	}
	require.Equal(t, []string{"Ada", "Grace"}, names, "the duplicate did nothing")
	require.Len(t, decode[listing](t, d.Server, "ls").Turns, 2)
}

func object(t *testing.T, v any) map[string]any {
	t.Helper()
	m, isObject := v.(map[string]any)
	require.True(t, isObject)
	return m
}

func inWork(t *testing.T, s *server) uint64 {
	t.Helper()
	stream, err := s.js.Stream(t.Context(), s.space.InStream())
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

func TestMessageOnAWrongSubjectIsRedrivenOnTheRightOne(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	body := func(turn string) string {
		return `{"kind":"structured_output_ready","auto_tool_mode":true,"agent":"Greeter","model_name":"Greeting","structured_data":{"name":"Ada"},` +
			`"turn_idempotency_key":"` + turn + `","context":{"chat_id":"c 1","workflow_name":"Hello"}}`
	}
	const wrong = "oneturn.in.default.structured_output_ready.evil.Hello.x"
	for _, turn := range []string{"t1", "t2"} {
		d.inbound(t, wrong, body(turn))
	}
	found := deadLetters(t, d.Server, 2)
	require.Equal(t, "subject_mismatch", found[0].Reason)
	code, stdout, _ := turnctl(t, d.Server, "dead", "redrive", seq(found[0].Seq))
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, "redriving fails again; --fix-subject")
	require.Equal(t, 2, strings.Count(ok(t, d.Server, "dead", "redrive", "--all"), " skipped: its subject does not match"))
	code, _, stderr := turnctl(t, d.Server, "dead", "redrive", seq(found[0].Seq), "--subject", "oneturn.dead.x.y")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "oneturn.in.<pool>")
	ok(t, d.Server, "dead", "redrive", seq(found[1].Seq), "--subject", "oneturn.in.default.structured_output_ready.default.Hello.c=201")
	ok(t, d.Server, "dead", "redrive", "--all", "--reason", "subject_mismatch", "--fix-subject")
	for _, turn := range []string{"t1", "t2"} {
		_, err := d.client.Await(t.Context(), turnID("c 1", "", turn))
		require.NoError(t, err)
	}
	deadLetters(t, d.Server, 0)
}

func TestRedriveOfAllHandlesEachStoredDeadLetterOnce(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	for range 3 {
		d.inbound(t, "oneturn.in.default.structured_output_ready.acme.Hello.c", `{`)
	}
	d.inbound(t, "oneturn.in.default.cancel.acme.Hello.c", `{"kind":"cancel"}`)
	deadLetters(t, d.Server, 4)
	text := ok(t, d.Server, "dead", "redrive", "--all")
	require.Equal(t, 4, strings.Count(text, " skipped: its bytes are "), text)
	out := decode[handledDeadLetters](t, d.Server, "dead", "redrive", "--all", "--reason", "undecodable", "--force")
	require.Len(t, out.Letters, 3)
	require.Less(t, out.Letters[0].Seq, out.Letters[2].Seq, "the oldest first")
	require.Equal(t, "missing_field", deadLetters(t, d.Server, 4)[3].Reason, "the others stay where they are")
	require.Equal(t, "no dead letters\n", ok(t, d.Server, "dead", "redrive", "--all", "--app", "nobody"))
}

func TestDeadLetterInABlobIsRedrivenWhole(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	s := d.Server
	space := mustSpace(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	blobs, err := store.NewBlobs(t.Context(), s.Connect(), js, space)
	require.NoError(t, err)
	body := `{"text":"` + strings.Repeat("x", 1<<20-20) + `"`
	m := &inbound.Message{Subject: space.In("default", "structured_output_ready", "acme", "W", "c"), Data: []byte(body)}
	m.Lease.Stream, m.Lease.Seq = "ONETURN_IN", 4711
	metrics, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, deadletter.New(js, space, blobs, metrics).Put(t.Context(), m, "undecodable", cli.ErrReported))
	found := deadLetters(t, s, 1)
	require.NotEmpty(t, found[0].Blob)
	require.Equal(t, len(body), found[0].Bytes)
	require.NotContains(t, ok(t, s, "dead", "show", seq(found[0].Seq)), "xxxx")
	require.Contains(t, ok(t, s, "dead", "show", seq(found[0].Seq), "--payload"), "xxxx")
	ok(t, s, "dead", "redrive", seq(found[0].Seq), "--force")
	require.Equal(t, found[0].SHA256, again(t, s, found[0].Seq), "the same bytes failed again")
}

func TestBytesThatNewerDeadLettersReplacedAreReportedDeleted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	space := mustSpace(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	blobs, err := store.NewBlobs(t.Context(), s.Connect(), js, space)
	require.NoError(t, err)
	metrics, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	for i, text := range []string{"older", "newer"} {
		m := &inbound.Message{Subject: space.In("default", "cancel", "acme", "W", "c"), Data: []byte(strings.Repeat(text, 5000))}
		m.Lease.Stream, m.Lease.Seq = "ONETURN_IN", uint64(1+i*subjects.DeadBlobs)
		require.NoError(t, deadletter.New(js, space, blobs, metrics).Put(t.Context(), m, "undecodable", cli.ErrReported))
	}
	require.Contains(t, ok(t, s, "dead", "show", "2", "--payload"), "newernewer")
	for _, args := range [][]string{{"dead", "show", "1", "--payload"}, {"dead", "redrive", "1", "--force"}} {
		code, stdout, stderr := turnctl(t, s, args...)
		require.Equal(t, cli.Failed, code)
		require.Contains(t, normal(stdout+stderr), "a newer dead letter of the same tenant and kind replaced them")
	}
	require.Len(t, deadLetters(t, s, 2), 2, "the dead letter stays")
}

// again waits for a dead letter after seq and returns the hash of its bytes.
func again(t *testing.T, s *oneturntest.Server, after uint64) string {
	t.Helper()
	var sum string
	require.Eventually(t, func() bool {
		found := decode[deadListing](t, s, "dead", "ls").Letters
		if len(found) == 1 && found[0].Seq > after {
			sum = found[0].SHA256
		}
		return sum != ""
	}, 10*time.Second, 10*time.Millisecond)
	return sum
}

func TestHostileDeadLetterReadsNoOtherBlobAndIsPublishedOnNoOtherSubject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	m := &nats.Msg{Subject: "oneturn.dead.acme.cancel", Header: nats.Header{}, Data: []byte("\x1b[31m{}")}
	m.Header.Set(deadletter.HeaderReason, "evil\x1b[31m")
	m.Header.Set(deadletter.HeaderSubject, "oneturn.events.acme.c.t.0.tool_response")
	_, err = js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
	m.Header.Set(deadletter.HeaderBlob, "acme.c.t.0.tool_call.0123456789abcdef")
	_, err = js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
	require.NotContains(t, ok(t, s, "dead", "ls")+ok(t, s, "dead", "show", "1", "--payload"), "\x1b")
	for number, want := range map[string]string{"1": "not an inbound subject", "2": "does not belong to a dead letter"} {
		code, stdout, _ := turnctl(t, s, "dead", "redrive", number)
		require.Equal(t, cli.Failed, code)
		require.Contains(t, stdout, want)
	}
	deadLetters(t, s, 2)
	code, stdout, _ := turnctl(t, s, "dead", "redrive", "1", "--fix-subject", "-o", "json")
	require.Equal(t, cli.Failed, code)
	var out handledDeadLetters
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Equal(t, handledFailed, out.Letters[0].State)
}

func TestAnswerThatCouldNotBeReadIsListedButNotKept(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	const body = `{"response":"SECRET"`
	d.inbound(t, "oneturn.in.default.tool_call_response.acme.Hello.c", body)
	found := deadLetters(t, d.Server, 1)
	require.Equal(t, len(body), found[0].Bytes)
	require.Contains(t, found[0].NotKept, "may be secret")
	text := ok(t, d.Server, "dead", "show", seq(found[0].Seq))
	require.Contains(t, text, "not kept")
	require.NotContains(t, text, "SECRET")
	for _, args := range [][]string{
		{"dead", "show", seq(found[0].Seq), "--payload"}, {"dead", "redrive", seq(found[0].Seq), "--force"},
	} {
		code, stdout, stderr := turnctl(t, d.Server, args...)
		require.Equal(t, 1, code, stdout)
		require.Contains(t, normal(stdout+stderr), "may be secret")
	}
	require.Len(t, deadLetters(t, d.Server, 1), 1)
}

func TestDeadLettersOfMessagesNameTheMessage(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "NEXT")
	other := `{"kind": "agent_message", "agent": "Interviewer", "message_id": "m1", "content": "other", "context": {"chat_id": "c", "workflow_name": "Interviews"}}`
	_, err := v.Connect().Request("oneturn.in.default.agent_message.default.Interviews.c", []byte(other), 10*time.Second)
	require.NoError(t, err)
	found := deadLetters(t, v.Server, 1)
	require.Equal(t, []string{"message_conflict", "c", "m1", ""}, []string{found[0].Reason, found[0].Chat, found[0].Message, found[0].Turn})
	require.Regexp(t, `message_conflict +agent_message +default +c +m1 `, ok(t, v.Server, "dead", "ls"))
	require.Regexp(t, `(?m)^ +chat +c\n +message +m1\n +subject `, ok(t, v.Server, "dead", "show", seq(found[0].Seq)))
	require.Equal(t, "m1", decode[deadLetterFacts](t, v.Server, "dead", "show", seq(found[0].Seq)).Message)
}
