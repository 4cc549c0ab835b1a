package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
)

// soon is the interval of sweeps in these tests.
const soon = 100 * time.Millisecond

func TestSweepEndsATurnWhoseMessageIsGoneByItsEffect(t *testing.T) {
	t.Parallel()
	s := server(t)
	unsafe, again := newOrphan(t, s, "unsafe", "unsafe"), newOrphan(t, s, "again", "idempotent")
	unsafe.store(t)
	again.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))

	r := unsafe.response(t)
	require.Equal(t, events.CodeInterrupted, r.Code)
	require.Equal(t, []string{"app", "chat 1", "unsafe", "Greeter", "greet", "Hello"}, []string{r.AppID, r.ChatID, r.Turn, r.Agent, r.ToolName, r.WorkflowName})
	r = again.response(t)
	require.True(t, r.Success)
	require.Equal(t, "Hello, Ada!", r.Content)
	require.Equal(t, []string{"Ada"}, f.entered())
	require.Equal(t, []int{2}, f.epochs)
	requireDrained(t, s)

	turn, err := again.load(t)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ab", 32), turn.Response.Meta.Fingerprint, "a client that waits for the data sees its end")
}

// TestTurnOfAKilledWorkerWhoseMessageWasDeletedEnds goes the whole way: a worker process dies
// inside the tool, an operator deletes the message, another worker sweeps.
func TestTurnOfAKilledWorkerWhoseMessageWasDeletedEnds(t *testing.T) {
	t.Parallel()
	for effect, code := range map[oneturn.Effect]events.Code{oneturn.Unsafe: events.CodeInterrupted, oneturn.Idempotent: ""} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			s := server(t)
			p := newPool(t, s, string(effect))
			p.start(1)
			id := oneturn.TurnID{App: "app", Chat: "c", Turn: "t"}
			c := client(t, s)
			receipt, err := c.Publish(t.Context(), &oneturn.Turn{
				TurnID: id, Workflow: "Work", Agent: "Worker", Model: "Work", Data: map[string]any{"millis": number(2000)},
			})
			require.NoError(t, err)
			_ = p.end(p.entered("t"), syscall.SIGKILL) // it was killed
			js, err := jetstream.New(s.Connect())
			require.NoError(t, err)
			in, err := js.Stream(t.Context(), "ONETURN_IN")
			require.NoError(t, err)
			require.NoError(t, in.DeleteMsg(t.Context(), receipt.Sequence))
			timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
			require.NoError(t, err)
			require.NoError(t, timers.Purge(t.Context())) // the dead worker's schedule is minutes away; a lost one is re-created
			tool := oneturn.NewTool("work", func(context.Context, work) (string, error) { return "done", nil }, oneturn.ToolOptions{
				Workflow: "Work", Agent: "Worker", Model: "Work",
				Effect: effect,
			})
			start(t, s, oneturn.Config{Tools: []oneturn.Tool{tool}, SweepEvery: soon})
			require.Equal(t, code, await(t, c, id).Code)
		})
	}
}

func TestSweepRunsFromStoredArgumentsThatAreABlob(t *testing.T) {
	t.Parallel()
	s := server(t)
	long := "Ada" + strings.Repeat("!", 300<<10)
	o := newOrphan(t, s, "large", "keyed")
	blobs, err := store.NewBlobs(t.Context(), s.Connect(), o.js, o.space)
	require.NoError(t, err)
	args, err := events.AppendJSON(nil, map[string]any{"name": long})
	require.NoError(t, err)
	o.event.Payload.ToolArgs, err = blobs.Shrink(t.Context(), o.key, events.KindToolCall, nil, args)
	require.NoError(t, err)
	o.store(t)
	lost := newOrphan(t, s, "lost", "keyed")
	lost.event.Payload.ToolArgs = events.Blob{Blob: lost.key.String() + ".tool_call." + strings.Repeat("0", 16), SHA256: strings.Repeat("0", 64), Size: 1}
	lost.store(t)
	looksLike := newOrphan(t, s, "looks like", "keyed") // data of the turn that merely names another turn's blob
	looksLike.event.Payload.ToolArgs = o.event.Payload.ToolArgs
	looksLike.store(t)

	var f fixer
	start(t, s, f.config(oneturn.Keyed))
	require.True(t, o.response(t).Success)
	require.Equal(t, events.CodeInterrupted, lost.response(t).Code)
	require.True(t, looksLike.response(t).Success)
	names := f.entered()
	require.Len(t, names, 2)
	require.True(t, slices.Contains(names, long))
	require.True(t, slices.Contains(names, ""), "only the turn's own blob is read")
}

func TestSweepLeavesParkedTurnsAndTurnsWithAMessageAlone(t *testing.T) {
	t.Parallel()
	s := server(t)
	parked := newOrphan(t, s, "parked", "replay")
	parked.store(t)
	parked.record(t, parked.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderOutcome: "parked",
	})
	held := newOrphan(t, s, "held", "idempotent")
	ack, err := held.js.Publish(t.Context(), held.space.In("other", "structured_output_ready", "app", "Hello", "chat 1"), nil)
	require.NoError(t, err)
	held.meta[idempotency.HeaderLease] = fmt.Sprintf("ONETURN_IN/%d/1", ack.Sequence)
	held.store(t)
	orphaned := newOrphan(t, s, "orphaned", "idempotent")
	orphaned.store(t)
	var f fixer
	registry := prometheus.NewRegistry()
	c := f.config(oneturn.Idempotent)
	c.Registry = registry
	start(t, s, c)
	require.True(t, orphaned.response(t).Success) // all are of one age: the others were seen too
	sweeps := gauge(t, registry, "oneturn_sweep_timestamp_seconds")
	require.Eventually(t, func() bool {
		return gauge(t, registry, "oneturn_sweep_timestamp_seconds") > sweeps && gauge(t, registry, "oneturn_sweep_open_turns") == 2
	}, 20*time.Second, 20*time.Millisecond)
	require.Greater(t, gauge(t, registry, "oneturn_sweep_oldest_open_turn_seconds"), 1.0)
	require.Len(t, f.entered(), 1)
	for _, o := range []*orphan{parked, held} {
		turn, err := o.load(t)
		require.NoError(t, err)
		require.Nil(t, turn.Response)
	}
}

// gauge reads a metric, 0 when it has not been set.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			m := family.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return 0
}

func TestTurnPastItsLifeEndsAsExpired(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "old", "replay")
	o.store(t)
	o.record(t, o.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderOutcome: "parked",
	})
	var f fixer
	c := f.config(oneturn.Effect("replay"))
	c.MaxTurnLife = 500 * time.Millisecond
	start(t, s, c)
	r := o.response(t)
	require.Equal(t, events.CodeExpired, r.Code)
	require.Contains(t, r.Content, "500ms")
	require.Empty(t, f.entered())
}

func TestTurnWithRecordsThatCannotBeReadEndsAsStateCorrupt(t *testing.T) {
	t.Parallel()
	s := server(t)
	headers, event, foreign := newOrphan(t, s, "headers", "idempotent"), newOrphan(t, s, "event", "idempotent"), newOrphan(t, s, "foreign", "idempotent")
	headers.meta[idempotency.HeaderEpoch] = "one"
	headers.store(t)
	event.record(t, event.key.Public(events.KindToolCall), []byte(`{"type":`), event.meta)
	foreign.event.ChatID = "another chat"
	foreign.store(t)
	var f fixer
	start(t, s, f.config(oneturn.Idempotent))
	for _, o := range []*orphan{headers, event, foreign} {
		r := o.response(t)
		require.Equal(t, events.CodeStateCorrupt, r.Code)
		require.Equal(t, []string{o.id.App, o.id.Chat, o.id.Turn}, []string{r.AppID, r.ChatID, r.Turn})
	}
	require.Empty(t, f.entered())
}

func TestOrphanWhoseToolIsGoneEndsAsUnknownToolAndOneOfAnotherWorkflowIsLeft(t *testing.T) {
	t.Parallel()
	s := server(t)
	tool, workflow := newOrphan(t, s, "tool", "idempotent"), newOrphan(t, s, "workflow", "idempotent")
	tool.event.ToolName = "gone"
	tool.store(t)
	workflow.event.WorkflowName = "Gone"
	workflow.store(t)
	var f fixer
	c := f.config(oneturn.Idempotent)
	c.BindingGrace = 200 * time.Millisecond
	start(t, s, c)
	r := tool.response(t)
	require.Equal(t, events.CodeUnknownTool, r.Code)
	require.Contains(t, r.Content, "cannot continue in the worker that took over the turn (no manifest has its tool)")
	require.Empty(t, f.entered())
	require.Eventually(t, func() bool { return unsettled(t, s) > 0 }, 10*time.Second, 10*time.Millisecond,
		"the turn of a workflow that this worker does not know is offered to others")
}
