package oneturn_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// lossy is a server, and a client whose connection to it may be broken.
type lossy struct {
	*testing.T

	server *oneturntest.Server
	proxy  *harness.Proxy
	in     jetstream.Stream
	client *oneturn.Client
}

func newLossy(t *testing.T, o oneturn.ClientOptions) *lossy {
	t.Helper()
	s := server(t)
	proxy := harness.NewProxy(t, strings.TrimPrefix(s.URL(), "nats://"))
	nc, err := nats.Connect(proxy.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := oneturn.NewClient(nc, o)
	require.NoError(t, err)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	in, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	return &lossy{t, s, proxy, in, c}
}

// lose loses what the server sends during a call, until it has stored a message.
func (l *lossy) lose(call func(context.Context) error) error {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Hour)
	defer cancel()
	before := l.state().LastSeq
	l.proxy.Stall(harness.Down)
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	l.eventually(func(s jetstream.StreamState) bool { return s.LastSeq > before })
	l.proxy.Reset()
	l.proxy.Heal()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		return context.DeadlineExceeded
	}
}

func (l *lossy) state() jetstream.StreamState {
	info, err := l.in.Info(l.Context())
	require.NoError(l, err)
	return info.State
}

func (l *lossy) eventually(holds func(jetstream.StreamState) bool) {
	l.Helper()
	require.Eventually(l, func() bool { return holds(l.state()) }, 20*time.Second, 10*time.Millisecond)
}

// The second copy comes after the duplicate window of the stream, so the journal finds it.
func TestTurnWhoseAcknowledgementIsLostIsPublishedAgainAndRunsOnce(t *testing.T) {
	t.Parallel()
	l := newLossy(t, oneturn.ClientOptions{})
	one := turn("t1", greeting{Name: "Ada"})
	var receipt oneturn.Receipt
	require.NoError(t, l.lose(func(ctx context.Context) (err error) {
		receipt, err = l.client.Publish(ctx, one)
		return err
	}))
	require.Equal(t, oneturn.Receipt{Sequence: 2}, receipt)
	var runs atomic.Int64
	start(t, l.server, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", func(context.Context, greeting) (string, error) {
		runs.Add(1)
		return "Hello", nil
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})}})
	require.True(t, await(t, l.client, one.TurnID).Success)
	l.eventually(func(s jetstream.StreamState) bool { return s.Msgs == 0 })
	require.Equal(t, int64(1), runs.Load())
}

// A cancel request has no id that the stream could know it by.
func TestCancelRequestWhoseAcknowledgementIsLostIsPublishedAgainAndEndsTheTurnOnce(t *testing.T) {
	t.Parallel()
	l := newLossy(t, oneturn.ClientOptions{})
	entered := make(chan struct{}, 10)
	start(t, l.server, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", func(ctx context.Context, _ greeting) (string, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})}})
	one := turn("t1", greeting{Name: "Ada"})
	publish(t, l.client, one)
	<-entered
	require.NoError(t, l.lose(func(ctx context.Context) error {
		_, err := l.client.Cancel(ctx, &oneturn.Cancel{TurnID: one.TurnID, Workflow: one.Workflow})
		return err
	}))
	require.Equal(t, uint64(3), l.state().LastSeq, "a turn and two cancel requests")
	require.Equal(t, events.CodeCancelled, await(t, l.client, one.TurnID).Code)
	l.eventually(func(s jetstream.StreamState) bool { return s.Msgs == 0 })
	require.Empty(t, entered)
}

// Its first result is lost as well.
func TestAnswerWhoseAcknowledgementIsLostIsSentAgainAndDecidedOnce(t *testing.T) {
	t.Parallel()
	l := newLossy(t, oneturn.ClientOptions{AnswerWait: time.Hour})
	start(t, l.server, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", func(ctx context.Context, in greeting) (string, error) {
		how, err := tool.Ask[string](ctx, tool.Question{Tool: "how", Component: "How", Payload: in})
		return how + ", " + in.Name, err
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: oneturn.Replay})}})
	one := turn("t1", greeting{Name: "Ada"})
	publish(t, l.client, one)
	asked := oneturn.QuestionID{App: one.App, Chat: one.Chat, ToolCallID: "t1/1"}
	require.Eventually(t, func() bool {
		q, err := l.client.Question(t.Context(), asked)
		return err == nil && q.State == api.Open
	}, 20*time.Second, 10*time.Millisecond)
	var v *events.AnswerResult
	require.NoError(t, l.lose(func(ctx context.Context) (err error) {
		v, err = l.client.Answer(ctx, &oneturn.Answer{QuestionID: asked, Workflow: one.Workflow, Value: "Good morning"})
		return err
	}))
	require.Equal(t, events.AnswerReplayed, v.Code)
	require.Equal(t, "Good morning, Ada", await(t, l.client, one.TurnID).Payload)
}
