package hostile_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

// lab is a worker on a separate server, and an attacker's connection.
type lab struct {
	*testing.T

	nc     *nats.Conn // the attacker's
	js     jetstream.JetStream
	client *oneturn.Client
	space  subjects.Space
	reg    *prometheus.Registry
	log    *harness.Output
	dead   jetstream.Consumer
}

// echo is the tool of most tests: it returns what it was given.
type echo struct {
	Text string `json:"text"`
}

func respond(_ context.Context, in echo) (map[string]any, error) {
	return map[string]any{"status": "success", "message": "echo", "text": in.Text}, nil
}

func echoTool() oneturn.Tool {
	return oneturn.NewTool("echo", respond, oneturn.ToolOptions{Workflow: "Echo", Agent: "Echoer", Model: "Echo"})
}

// newLab starts a worker with the tools, echo if there are none. It may not panic, and must
// settle every message before the test ends.
func newLab(t *testing.T, tools ...oneturn.Tool) *lab {
	t.Helper()
	if len(tools) == 0 {
		tools = []oneturn.Tool{echoTool()}
	}
	return newLabOf(t, oneturn.Config{Tools: tools})
}

func newLabOf(t *testing.T, c oneturn.Config) *lab {
	t.Helper()
	return newLabOn(t, oneturntest.NewServer(t), c)
}

// newLabOn starts the worker on a server.
func newLabOn(t *testing.T, s *oneturntest.Server, c oneturn.Config) *lab {
	t.Helper()
	s.Provision(func(o *provision.Options) { o.AckWait = 5 * time.Second }) // a busy machine redelivers nothing
	l := newClientLab(t, s)
	c.Registry, c.NoBindingGrace = l.reg, true
	c.Logger = slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.Zero(t, l.metric("oneturn_panics_total"), l.log)
	})
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 2*time.Millisecond)
	return l
}

// newClientLab is a lab without a worker, on a server that is provisioned.
func newClientLab(t *testing.T, s *oneturntest.Server) *lab {
	t.Helper()
	l := &lab{T: t, nc: s.Connect(), reg: prometheus.NewRegistry(), log: &harness.Output{}}
	var err error
	l.js, err = jetstream.New(l.nc)
	require.NoError(t, err)
	l.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	l.client, err = oneturn.NewClient(l.nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	l.dead, err = l.js.OrderedConsumer(t.Context(), l.space.DeadStream(), jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	return l
}

// metric returns the sum of a metric over all its labels.
func (l *lab) metric(name string) int {
	families, err := l.reg.Gather()
	require.NoError(l, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return int(sum)
}

// turn is a turn of the echo tool.
func turn(chat, key string) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: chat, Turn: key}, Workflow: "Echo", Agent: "Echoer", Model: "Echo",
		Data: map[string]any{"text": "hello"},
	}
}

// event is a turn as a client publishes it.
func event(t *oneturn.Turn) *events.StructuredOutputReady {
	return &events.StructuredOutputReady{
		TurnID: events.TurnID(t.TurnID), Workflow: t.Workflow, Agent: t.Agent, Model: t.Model, Data: t.Data, AutoToolMode: true,
	}
}

// raw is the body of a turn with the given data, as an attacker writes it.
func raw(chat, key, data string) []byte {
	return fmt.Appendf(nil, `{"kind":"structured_output_ready","agent":"Echoer","model_name":"Echo","structured_data":%s,`+
		`"auto_tool_mode":true,"turn_idempotency_key":%q,"context":{"app_id":"app","chat_id":%q,"workflow_name":"Echo"}}`, data, key, chat)
}

// send stores bytes in the inbound stream, on the subject of the echo workflow.
func (l *lab) send(chat string, header nats.Header, body []byte) {
	l.Helper()
	l.sendOn(l.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "Echo", chat), header, body)
}

func (l *lab) sendOn(subject string, header nats.Header, body []byte) {
	l.Helper()
	_, err := l.js.PublishMsg(l.Context(), &nats.Msg{Subject: subject, Header: header, Data: body})
	require.NoError(l, err)
}

// letter returns the next dead letter, which must have the reason.
func (l *lab) letter(reason string) jetstream.Msg {
	l.Helper()
	m, err := l.dead.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(l, err, l.log)
	require.Equal(l, reason, m.Headers().Get(deadletter.HeaderReason), m.Headers().Get(deadletter.HeaderError))
	require.NotEmpty(l, m.Headers().Get(deadletter.HeaderError))
	return m
}

func (l *lab) publish(t *oneturn.Turn) {
	l.Helper()
	_, err := l.client.Publish(l.Context(), t)
	require.NoError(l, err)
}

func (l *lab) await(id oneturn.TurnID) *oneturn.Response {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 20*time.Second)
	defer cancel()
	r, err := l.client.Await(ctx, id)
	require.NoError(l, err, l.log)
	return r
}

// ends publishes a turn and returns its response.
func (l *lab) ends(t *oneturn.Turn) *oneturn.Response {
	l.Helper()
	l.publish(t)
	return l.await(t.TurnID)
}

// goesOn proves that a turn of another chat still runs.
func (l *lab) goesOn() {
	l.Helper()
	one := turn("bystander", rand.Text())
	require.True(l, l.ends(one).Success)
}

// drained waits until every inbound message is settled: nothing is lost, nothing is redelivered.
func (l *lab) drained() {
	l.Helper()
	stream, err := l.js.Stream(l.Context(), l.space.InStream())
	require.NoError(l, err)
	require.Eventually(l, func() bool {
		info, err := stream.Info(l.Context())
		return err == nil && info.State.Msgs == 0
	}, 10*time.Second, 5*time.Millisecond, "messages are left in the inbound stream")
}

func object(t *testing.T, v any) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok, "%T is not an object", v)
	return m
}

func number(s string) json.Number { return json.Number(s) }
