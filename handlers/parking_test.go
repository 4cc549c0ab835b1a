package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestTurnIsParkedWhenItHasWaitedForAWhile(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks("", ""), func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		pass(9 * time.Second)
		o.answer("1", "yes")
		pass(9 * time.Second)
		require.False(t, o.parked())
		pass(2 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		require.Equal(t, 1, o.count("turns_parked_total"))
		require.Equal(t, 1, o.count("questions_closed_total", "parked"))
		require.Zero(t, o.count("questions_open"))
		require.Zero(t, o.slots.away.Load())
		require.Zero(t, o.Running())
		waits := o.heard(events.KindRunComplete)
		require.Len(t, waits, 1)
		require.Equal(t, json.Number("0"), waits[0].data["status"])
		require.Equal(t, "awaiting_user_input", waits[0].data["reason"])

		o.answer("2", "no") // it continues in the handler of the answer
		require.Equal(t, []any{"yes", "no"}, o.response().Payload)
		require.Equal(t, 1, o.count("turns_resumed_total"))
		ended := o.heard(events.KindRunComplete)
		require.Len(t, ended, 2)
		require.Equal(t, json.Number("1"), ended[1].data["status"])
	})
}

func TestParkedTurnContinuesWithTheArgumentsAndContextThatItHad(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 2*inline)
	for name, c := range map[string]struct {
		turn  func(*events.StructuredOutputReady)
		want  string
		reads bool
	}{
		"of the event":    {func(e *events.StructuredOutputReady) { e.ContextVariables = map[string]any{"plan": "snapshot"} }, "snapshot", true},
		"large":           {func(e *events.StructuredOutputReady) { e.ContextVariables = map[string]any{"plan": large} }, large, true},
		"of the bucket":   {func(*events.StructuredOutputReady) {}, "gold", true},
		"none in event":   {func(e *events.StructuredOutputReady) { e.ContextVariables = map[string]any{} }, "gold", true},
		"never looked at": {func(*events.StructuredOutputReady) {}, "changed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				runs++
				var vars map[string]any
				if c.reads || runs > 1 {
					var err error
					if vars, err = call.LoadContext(ctx); err != nil {
						return tools.Result{}, err
					}
				}
				for _, ask := range []string{"a", "b"} { // it parks twice
					if _, err := call.Host.Ask(ctx, tools.Question{Name: ask}); err != nil {
						return tools.Result{}, err
					}
				}
				plan, _ := vars["plan"].(string)
				value, err := json.Marshal(map[string]any{"plan": fmt.Sprintf("%.10s, %d bytes", plan, len(plan)), "n": call.Args["n"], "epoch": call.Epoch, "agent": call.Agent, "user": call.UserID})
				return tools.Result{Value: value}, err
			}
			inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				o.handle(o.turn(c.turn))
				for _, ask := range []string{"a", "b"} {
					pass(time.Minute)
					require.True(t, o.parked())
					if c.reads {
						o.vars = map[string]any{"plan": "changed"}
					} else {
						o.vars["plan"] = "changed"
					}
					o.handle(o.answers(ask, true))
				}
				require.Equal(t, 3, runs)
				require.Equal(t, map[string]any{
					"plan": fmt.Sprintf("%.10s, %d bytes", c.want, len(c.want)), "n": json.Number("1"), "epoch": json.Number("3"), "agent": "A", "user": "ada",
				}, o.response().Payload)
			})
		})
	}
}

func TestUnsafeToolIsNeverParked(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectUnsafe, asks("", ""), func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		pass(24 * time.Hour)
		o.Drain()
		pass(time.Minute)
		require.Len(t, o.heard(events.KindRunComplete), 1, "frontends are notified once that it waits")
		require.Equal(t, int32(1), o.slots.away.Load())
		o.answer("1", "yes")
		pass(time.Minute)
		require.Len(t, o.heard(events.KindRunComplete), 2, "it waits again")
		o.answer("2", "yes")
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, []any{"yes", "yes"}, o.response().Payload)
		require.Zero(t, o.count("turns_parked_total"))
	})
}

func TestDrainParksImmediatelyAndStopsAnUnsafeToolAtItsEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		done := o.handle(o.turn())
		o.Drain()
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
	})
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) { // it asks while the worker drains
		t.Helper()
		o.Drain()
		require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
		require.True(t, o.parked())
	})
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		ctx, stop := context.WithCancelCause(t.Context())
		done := make(chan inbound.Disposition, 1)
		m := o.turn()
		go func() { done <- o.Handle(ctx, m) }()
		synctest.Wait()
		o.Drain()
		synctest.Wait()
		stop(handlers.ErrDraining)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, events.CodeInterrupted, o.response().Code)
	})
}

func TestRunsOverTheBoundAreParkedImmediately(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		o.MaxWaiting = 2
		turn := func(n int) <-chan inbound.Disposition {
			return o.handle(o.turn(func(e *events.StructuredOutputReady) { e.Turn = fmt.Sprint("turn", n) }))
		}
		turn(1)
		turn(2)
		require.Equal(t, int32(2), o.slots.away.Load())
		require.Equal(t, inbound.Ack, settled(t, turn(3)).Do)
		require.Equal(t, 1, o.count("turns_parked_total"))
		require.Equal(t, int32(2), o.slots.away.Load())
		pass(time.Minute)
		require.Equal(t, 3, o.count("turns_parked_total"))
		turn(4)
		require.Equal(t, int32(1), o.slots.away.Load(), "there is room again")
		pass(time.Minute)
	})
}

// TestUnsafeToolsOfATenantKeepABoundedNumberOfTurnsInMemory: the next question is refused before it is
// asked, another tenant's is not, and there is room again when one has its answer.
func TestUnsafeToolsOfATenantKeepABoundedNumberOfTurnsInMemory(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		config := o.Config
		config.MaxAckPending = 3 * 32 // two runs of a tenant, three in all
		o.Handlers = handlers.New(config)
		ctx, stop := context.WithCancelCause(t.Context())
		defer synctest.Wait()
		defer stop(handlers.ErrDraining)
		turn := func(app, name string) <-chan inbound.Disposition {
			o.key = subjects.TurnKey(app, "chat", "", name)
			m := o.turn(func(e *events.StructuredOutputReady) { e.App, e.Turn = app, name })
			m.Subject = o.space.In("default", events.KindStructuredOutputReady, app, "WF", "chat")
			done := make(chan inbound.Disposition, 1)
			go func() { done <- o.Handle(ctx, m) }()
			synctest.Wait()
			return done
		}
		first := turn("app", "turn")
		turn("app", "second")
		require.Equal(t, int32(2), o.slots.away.Load())
		require.Equal(t, inbound.Ack, settled(t, turn("app", "third")).Do)
		require.Equal(t, events.CodeToolError, o.response().Code)
		require.Contains(t, o.response().Content, "the question was not asked")
		_, err := o.store.Last(t.Context(), o.key.Public(events.RecordAsk, "1"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		o.key = subjects.TurnKey("app", "chat", "", "turn")
		o.answer("1", "yes")
		require.Equal(t, inbound.Ack, settled(t, first).Do)
		turn("app", "fourth")
		require.Equal(t, int32(2), o.slots.away.Load(), "there is room again")
		turn("other", "turn")
		require.Equal(t, int32(3), o.slots.away.Load())
	})
}

func TestRunThatHasLostItsLeaseAtAQuestionLeavesItsMessage(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		m := o.turn()
		held, lose := context.WithCancel(t.Context())
		m.Held = held
		done := o.handle(m)
		lose()
		require.Equal(t, inbound.Leave, settled(t, done).Do)
		m.Lease.Delivery, m.Held = 2, t.Context()
		done = o.handle(m)
		o.answer("1", "yes")
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.response().Success)
	})
}
