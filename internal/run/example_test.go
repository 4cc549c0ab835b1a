package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// confirm asks a question and returns the answer.
type confirm struct{}

// Invoke implements [tools.Invoker].
func (confirm) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	a, err := call.Host.Ask(ctx, tools.Question{Name: "plan", Component: "PlanCard"})
	return tools.Result{Value: a.Value}, err
}

// blobs keeps all payloads in their records.
type blobs struct{}

// Inline implements [store.BlobStore].
func (blobs) Inline(int) bool { return true }

// Shrink implements [store.BlobStore].
func (blobs) Shrink(_ context.Context, _ subjects.Key, _ string, value any, _ []byte) (any, error) {
	return value, nil
}

// Object implements [store.BlobStore].
func (blobs) Value(_ context.Context, _ subjects.Key, _ string, stored any) (any, error) {
	return stored, nil
}

func (blobs) Object(_ context.Context, _ subjects.Key, _ string, stored any) (map[string]any, error) {
	object, ok := stored.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	return object, nil
}

// A turn whose tool asks is parked, and the answer has its tool run again: this time the host has the answer.
func Example() {
	set, err := bindings.Load(context.Background(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "Shop", Agent: "Planner", Model: "Plan", Tool: "confirm", Schema: json.RawMessage(`{"type":"object"}`), Effect: bindings.EffectReplay},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	space, _ := subjects.New(subjects.DefaultPrefix)
	counts, _ := metrics.New(prometheus.NewRegistry())
	journal := idempotency.New(storetest.NewMemory(), "worker", idempotency.Options{})
	config := run.Config{
		Space: space, Journal: journal, Bindings: func() *bindings.Set { return set }, Blobs: blobs{},
		Live: func(string, []byte) error { return nil }, Metrics: counts, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	shrink := func(_, _ context.Context, _ subjects.Key, _ string, value any, _ []byte) (any, error) {
		return value, nil
	}
	runs := run.NewRegistry(&config, &throttle.Lines{}, new(answers.Schemas).CheckSchema, shrink)
	runs.Resize(1000)

	ctx := context.Background()
	event := &events.StructuredOutputReady{TurnID: events.TurnID{App: "acme", Chat: "c1", Turn: "t1"}, Workflow: "Shop", Agent: "Planner", Model: "Plan"}
	key := subjects.TurnKey(event.App, event.Chat, event.Run, event.Turn)
	execute := func(d idempotency.Decision) {
		t := &run.Turn{
			StructuredOutputReady: event, Key: key, Name: key.String(), CallID: "t1", Binding: set.Bound("Shop", "Planner", "confirm"), Tool: confirm{},
			Message: run.Message{Held: ctx, Subject: space.In("default", events.KindStructuredOutputReady, "acme", "Shop", "c1")},
		}
		tool, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		r := runs.Start(tool, stop, t, d, time.Now())
		defer runs.Remove(r)
		out := engine.New(engine.Options{}).Do(tool, r.Invocation(&tools.Call{Name: "confirm", Args: map[string]any{}, Secrets: r.Secrets()}))
		if _, why := r.Close(); why != nil {
			fmt.Println("the run ends:", errors.Is(why, tools.ErrParked))
			return
		}
		fmt.Println("the tool returned", string(out.Payload))
	}

	claimed, err := journal.Claim(ctx, idempotency.Claim{
		Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}, Event: []byte(`{}`), Effect: string(bindings.EffectReplay),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	execute(claimed)

	answered, err := journal.Answer(ctx, idempotency.Answer{
		Key: key, ID: "plan", Lease: idempotency.Lease{Stream: "IN", Seq: 2, Delivery: 1}, Outcome: idempotency.Answered, Data: []byte(`"gold"`),
		Check: func(idempotency.Record) error { return nil }, Ack: func(idempotency.Record) ([]byte, error) { return []byte(`{}`), nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	execute(answered.Decision)
	// Output:
	// the run ends: true
	// the tool returned "gold"
}
