package worker_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
)

// slow counts the runs of an unsafe tool that takes as long as its turn asks for.
type slow struct{ entered, ended atomic.Int32 }

func (s *slow) config() oneturn.Config {
	type input struct {
		Millis int `json:"millis"`
	}
	tool := func(ctx context.Context, in input) (string, error) {
		s.entered.Add(1)
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
			s.ended.Add(1)
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return oneturn.Config{
		Slots: 1, SoftStop: 10 * time.Millisecond,
		Tools: []oneturn.Tool{oneturn.NewTool("work", tool, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: oneturn.Unsafe})},
	}
}

func takes(key string, d time.Duration) *oneturn.Turn {
	return turn(key, map[string]any{"millis": number(d.Milliseconds())})
}

// runOn starts a worker on a connection, until it is stopped.
func runOn(t *testing.T, nc *nats.Conn, c oneturn.Config) (stop func()) {
	t.Helper()
	w, err := oneturn.NewWorker(nc, c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Run(ctx) // of one that was cut off, whatever it is
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// underWay is how many messages workers hold.
func underWay(t *testing.T, s *oneturntest.Server) int {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	return consumer.CachedInfo().NumAckPending
}

// pullsAhead gives a worker fast turns until it pulls ahead of its slots, then one that keeps its only
// slot busy and one that it has to buffer.
func pullsAhead(t *testing.T, s *oneturntest.Server, c *oneturn.Client, w *slow, busy, buffered *oneturn.Turn) {
	t.Helper()
	const quick = 30
	for i := range quick {
		one := takes(fmt.Sprint("quick", i), 0)
		publish(t, c, one)
		await(t, c, one.TurnID)
	}
	publish(t, c, busy)
	require.Eventually(t, func() bool { return w.entered.Load() == quick+1 }, 10*time.Second, time.Millisecond)
	publish(t, c, buffered)
	require.Eventually(t, func() bool { return underWay(t, s) == 2 }, 10*time.Second, 5*time.Millisecond)
}

// behindProxy connects through a proxy that can break the link.
func behindProxy(t *testing.T, s *oneturntest.Server) (*harness.Proxy, *nats.Conn) {
	t.Helper()
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	proxy := harness.NewProxy(t, u.Host)
	nc, err := nats.Connect(proxy.URL(), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return proxy, nc
}

// F03: see docs/faults.md. A node that had lost its network reconnects and is drained: what it requeues may be another
// worker's by now.
func TestWorkerThatWasCutOffTakesNoTurnFromItsNewOwner(t *testing.T) {
	t.Parallel()
	s := server(t)
	proxy, nc := behindProxy(t, s)
	var cutOff, owner, third slow
	stop := runOn(t, nc, cutOff.config())
	c := client(t, s)
	victim := takes("victim", 4*time.Second)
	pullsAhead(t, s, c, &cutOff, takes("busy", time.Minute), victim)
	proxy.Refuse(true)
	proxy.Reset()
	runOn(t, s.Connect(), owner.config())
	require.Eventually(t, func() bool { return owner.entered.Load() == 1 }, 20*time.Second, time.Millisecond)
	runOn(t, s.Connect(), third.config())
	proxy.Heal()
	require.Eventually(t, func() bool { return nc.IsConnected() && nc.FlushTimeout(time.Second) == nil }, 10*time.Second, time.Millisecond)
	stop()
	require.Empty(t, await(t, c, victim.TurnID).Code)
	require.Equal(t, int32(1), owner.entered.Load()+third.entered.Load())
}

// F05: see docs/faults.md.
func TestAckWaitIsNotLoweredUnderARunningWorker(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision(func(o *provision.Options) { o.AckWait = 30 * time.Second })
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	plan, err := provision.New(provision.Options{AckWait: time.Second})
	require.NoError(t, err)
	var one, other slow
	stopOne, stopOther := runOn(t, s.Connect(), one.config()), runOn(t, s.Connect(), other.config())
	c := client(t, s)
	turns := []*oneturn.Turn{takes("a", 3*time.Second), takes("b", 3*time.Second)}
	publish(t, c, turns...)
	require.Eventually(t, func() bool { return one.entered.Load()+other.entered.Load() == 2 }, 10*time.Second, time.Millisecond)
	_, err = provision.Apply(t.Context(), js, plan)
	require.ErrorIs(t, err, provision.ErrRefused, "all slots are taken, so that no worker asks for messages")
	for _, x := range turns {
		require.Empty(t, await(t, c, x.TurnID).Code)
	}
	_, err = provision.Apply(t.Context(), js, plan)
	require.ErrorIs(t, err, provision.ErrRefused)
	require.ErrorContains(t, err, "consumer ONETURN_IN/workers-default: ack_wait 30s → 1s: refused: workers run")
	require.ErrorContains(t, err, "stop them first")
	stopOne()
	stopOther()
	_, err = provision.Apply(t.Context(), js, plan)
	require.NoError(t, err)
}

// F26: see docs/faults.md.
func TestDrainReleasesBufferedTurnsWhileItsToolsRun(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision(func(o *provision.Options) { o.AckWait = 30 * time.Second })
	var drained, idle slow
	config := drained.config()
	config.SoftStop = 20 * time.Second
	stop := runOn(t, s.Connect(), config)
	c := client(t, s)
	busy, buffered := takes("busy", 3*time.Second), takes("buffered", 0)
	pullsAhead(t, s, c, &drained, busy, buffered)
	runOn(t, s.Connect(), idle.config())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	require.Empty(t, await(t, c, buffered.TurnID).Code)
	require.Equal(t, int32(1), idle.ended.Load())
	select {
	case <-stopped:
		require.Fail(t, "the drain was over before the other worker had the turn")
	default:
	}
	require.Empty(t, await(t, c, busy.TurnID).Code)
	<-stopped
}
