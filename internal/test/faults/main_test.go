package faults_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

// rig is a server whose live copies are kept, a ledger, and what was published.
type rig struct {
	*testing.T

	server *oneturntest.Server
	space  subjects.Space
	nc     *nats.Conn
	js     jetstream.JetStream
	client *oneturn.Client // without Nats-Msg-Id
	path   string          // of the ledger
	ledger *oneturntest.Ledger
	reg    *prometheus.Registry // of the worker that was started last
	log    *harness.Output

	mu       sync.Mutex
	accepted []oneturntest.Accepted
	messages []oneturntest.SentMessage
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, server: oneturntest.NewServer(t), path: filepath.Join(t.TempDir(), "ledger"), log: &harness.Output{}}
	r.server.Provision()
	r.nc = r.server.Connect()
	var err error
	r.js, err = jetstream.New(r.nc)
	require.NoError(t, err)
	r.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	require.NoError(t, oneturntest.Audit(t.Context(), r.js, r.space, 1))
	r.client, err = oneturn.NewClient(r.nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	r.ledger, err = oneturntest.OpenLedger(r.path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.ledger.Close()) })
	return r
}

type work struct {
	Millis int `json:"millis"` // how long the tool takes
}

// tool is a tool of a workflow and effect that writes to the ledger.
func (r *rig) tool(workflow, effect string) oneturn.Tool {
	return r.redeclared(workflow, effect, effect)
}

// redeclared is the tool that was declared with one effect and has another now.
func (r *rig) redeclared(workflow, effect, now string) oneturn.Tool {
	return oneturn.NewTool("work_"+effect, func(ctx context.Context, in work) (string, error) {
		call := tool.Info(ctx)
		if err := r.ledger.Enter(call); err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "done", r.ledger.Exit(call)
	}, oneturn.ToolOptions{Workflow: workflow, Agent: "Agent_" + effect, Model: "Work", Effect: oneturn.Effect(now)})
}

// start runs a worker that consumes when start returns; stop ends it gently.
func (r *rig) start(c oneturn.Config) (w *oneturn.Worker, stop func()) {
	r.Helper()
	r.reg = prometheus.NewRegistry()
	c.Registry, c.Logger = r.reg, slog.New(slog.NewTextHandler(r.log, nil))
	w, err := oneturn.NewWorker(r.server.Connect(), c)
	require.NoError(r, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r, <-done)
	})
	r.Cleanup(stop)
	require.Eventually(r, func() bool { return w.Ready() == nil }, 20*time.Second, 2*time.Millisecond)
	return w, stop
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// turn is a turn of a workflow's tool of an effect.
func turn(workflow, chat, key, effect string, millis int) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: chat, Turn: key}, Workflow: workflow, Agent: "Agent_" + effect, Model: "Work",
		Data: map[string]any{"millis": number(millis)},
	}
}

// publish publishes a turn and records it for the checker.
func (r *rig) publish(t *oneturn.Turn, mayFail bool) {
	r.Helper()
	_, err := r.client.Publish(r.Context(), t)
	require.NoError(r, err)
	r.accept(t, mayFail)
}

func (r *rig) accept(t *oneturn.Turn, mayFail bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted = append(r.accepted, oneturntest.Accepted{App: t.App, Chat: t.Chat, Run: t.Run, Turn: t.Turn, MayFail: mayFail, At: time.Now()})
}

func (r *rig) await(id oneturn.TurnID) *oneturn.Response {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	response, err := r.client.Await(ctx, id)
	require.NoError(r, err, r.log)
	return response
}

// load publishes turns of chat "bystander" at a steady rate.
func (r *rig) load(rate int) *harness.Load {
	r.Helper()
	return harness.StartLoad(r.Context(), harness.LoadOptions{
		Rate: rate,
		Turn: func(n int) (*oneturn.Turn, oneturntest.Accepted) {
			t := turn("Work", "bystander", "load-"+strconv.Itoa(n), "unsafe", n%5)
			return t, oneturntest.Accepted{App: t.App, Chat: t.Chat, Turn: t.Turn}
		},
		Publish: func(ctx context.Context, t *oneturn.Turn) error {
			_, err := r.client.Publish(ctx, t)
			return err
		},
	})
}

// bystander chooses the turns of load.
func bystander(a oneturntest.Accepted) bool { return a.Chat == "bystander" }

// goesOn waits until the load has published n more turns.
func (r *rig) goesOn(l *harness.Load, n int) {
	r.Helper()
	before := len(l.Accepted())
	require.Eventually(r, func() bool { return len(l.Accepted()) >= before+n }, 30*time.Second, 5*time.Millisecond)
}

// settle ends the load, waits until every message is settled, and judges. Hit are the turns
// that a fault was meant for.
func (r *rig) settle(l *harness.Load, hit ...*oneturn.Turn) *oneturntest.Facts {
	r.Helper()
	if l != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		require.Zero(r, l.Stop(ctx))
		r.accepted = append(r.accepted, l.Accepted()...)
	}
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	facts, err := oneturntest.AtRest(ctx, r.nc, r.space, r.path)
	require.NoError(r, err)
	r.mu.Lock()
	facts.Accepted, facts.Messages = r.accepted, r.messages
	r.mu.Unlock()
	struck := map[string]bool{}
	for _, t := range hit {
		struck[subjects.TurnKey(t.App, t.Chat, t.Run, t.Turn).String()] = true
	}
	require.Empty(r, oneturntest.Check(facts, struck), r.log)
	return facts
}

func (r *rig) drained() {
	r.Helper()
	require.Eventually(r, func() bool {
		s, err := r.js.Stream(r.Context(), r.space.InStream())
		return err == nil && s.CachedInfo().State.Msgs == 0
	}, 30*time.Second, 10*time.Millisecond, "messages are left in the inbound stream")
}

// entered counts the entries of a turn's tool in the ledger.
func (r *rig) entered(id oneturn.TurnID) (n int) {
	r.Helper()
	entries, err := oneturntest.ReadLedger(r.path)
	require.NoError(r, err)
	for _, e := range entries {
		if e.Phase == oneturntest.PhaseEnter && e.Chat == id.Chat && e.Turn == id.Turn {
			n++
		}
	}
	return n
}

// metric returns the sum of a counter of the worker that was started last.
func (r *rig) metric(name string) int {
	r.Helper()
	families, err := r.reg.Gather()
	require.NoError(r, err)
	sum := 0.0
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}
