package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

func TestTurnIsParkedWhenNothingHasHappenedAtTheDeskForAWhile(t *testing.T) {
	t.Parallel()
	inOffice(t, bindings.EffectReplay, asks("", ""), func(t *testing.T, o *office) {
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

		o.answer("2", "no") // it runs on in whoever handles the answer
		require.Equal(t, []any{"yes", "no"}, o.response().Payload)
		require.Equal(t, 1, o.count("turns_resumed_total"))
		ended := o.heard(events.KindRunComplete)
		require.Len(t, ended, 2)
		require.Equal(t, json.Number("1"), ended[1].data["status"])
	})
}

func TestParkedTurnGoesOnWithTheArgumentsAndContextThatItHad(t *testing.T) {
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
			inOffice(t, bindings.EffectReplay, tool, func(t *testing.T, o *office) {
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
					o.handle(o.says(ask, true))
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
	inOffice(t, bindings.EffectUnsafe, asks("", ""), func(t *testing.T, o *office) {
		t.Helper()
		done := o.handle(o.turn())
		pass(24 * time.Hour)
		o.Drain()
		pass(time.Minute)
		require.Len(t, o.heard(events.KindRunComplete), 1, "frontends are told once that it waits")
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

func TestDrainParksAtOnceAndGivesUpAnUnsafeToolAtItsEnd(t *testing.T) {
	t.Parallel()
	inOffice(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *office) {
		t.Helper()
		done := o.handle(o.turn())
		o.Drain()
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
	})
	inOffice(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *office) { // it asks while the worker drains
		t.Helper()
		o.Drain()
		require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
		require.True(t, o.parked())
	})
	inOffice(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *office) {
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

func TestRunsOverTheBoundAreParkedAtOnce(t *testing.T) {
	t.Parallel()
	inOffice(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *office) {
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
	inOffice(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *office) {
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

func TestAnswerThatComesWhileItParksWakesTheOwner(t *testing.T) {
	t.Parallel()
	inOffice(t, bindings.EffectReplay, asks("", ""), func(t *testing.T, o *office) {
		t.Helper()
		o.ParkAfter = time.Second
		done := o.handle(o.turn())
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.says("1", "yes")).Do) // its live copy is lost
		pass(1500 * time.Millisecond)
		require.Equal(t, 1, o.count("questions_closed_total", "answered"), "it looked when it could not park")
		pass(time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked(), "as the next epoch")
		o.answer("2", "no")
		require.Equal(t, []any{"yes", "no"}, o.response().Payload)
	})
}

func TestSeveralQuestionsAtOnceAreAnsweredInAnyOrderAcrossParks(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		runs.Add(1)
		names := []string{"a", "b", "c"}
		said, errs := make([]json.RawMessage, 3), make(chan error, 3)
		for i, name := range names {
			go func() {
				a, err := call.Host.Ask(ctx, tools.Question{Name: name})
				said[i] = a.Value
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
			return tools.Result{}, err
		}
		value, err := json.Marshal(said)
		return tools.Result{Value: value}, err
	}
	inOffice(t, bindings.EffectReplay, tool, func(t *testing.T, o *office) {
		t.Helper()
		first := o.handle(o.turn())
		require.Equal(t, int32(1), o.slots.away.Load(), "one slot, however many wait")
		o.answer("c", "3")
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, first).Do)
		require.True(t, o.parked())
		second := o.handle(o.says("a", "1"))
		require.Equal(t, int32(2), runs.Load())
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, second).Do, "parked again, and the answer is acknowledged")
		require.True(t, o.parked())
		o.answer("b", "2")
		require.Equal(t, []any{"1", "2", "3"}, o.response().Payload)
	})
}

func TestToolThatIgnoresThatItsTurnIsParkedCanDoNothingAnyMore(t *testing.T) {
	t.Parallel()
	var after []error
	release := make(chan struct{})
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Epoch > 1 {
			return tools.Result{}, nil
		}
		d := call.Host
		_, err := d.Ask(context.WithoutCancel(ctx), tools.Question{})
		<-release
		_, errAsk := d.Ask(context.WithoutCancel(ctx), tools.Question{})
		_, errShow := d.Show(ctx, tools.Surface{})
		_, _, errStep := d.StepResult(ctx, "s")
		_, errStore := d.StoreStep(ctx, "s", json.RawMessage("1"))
		after = []error{err, errAsk, errShow, errStep, errStore, d.Progress(ctx, tools.Progress{}), d.Dismiss(ctx, "turn/1")}
		return tools.Result{Value: json.RawMessage(`"late"`)}, nil
	}
	inOffice(t, bindings.EffectReplay, tool, func(t *testing.T, o *office) {
		t.Helper()
		release = make(chan struct{})
		done := o.handle(o.turn())
		pass(12 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, 1, o.count("abandoned_tools_total"))
		close(release)
		synctest.Wait()
		require.Len(t, after, 7)
		for _, err := range after {
			require.ErrorIs(t, err, tools.ErrParked)
		}
		require.True(t, o.parked())
		_, err := o.store.Last(t.Context(), o.key.Public(events.RecordAsk, "2"))
		require.Error(t, err)
		o.answer("1", "yes")
		require.Nil(t, o.response().Payload)
	})
}

func TestStepThatIsBeingDoneIsNotCutOffByParking(t *testing.T) {
	t.Parallel()
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		asked := make(chan error, 1)
		go func() {
			_, err := call.Host.Ask(ctx, tools.Question{})
			asked <- err
		}()
		_, done, err := call.Host.StepResult(ctx, "slow")
		if err == nil && !done {
			select {
			case <-time.After(25 * time.Second):
			case <-ctx.Done():
				return tools.Result{}, context.Cause(ctx)
			}
			_, err = call.Host.StoreStep(ctx, "slow", json.RawMessage("1"))
		}
		return tools.Result{}, errors.Join(err, <-asked)
	}
	inOffice(t, bindings.EffectReplay, tool, func(t *testing.T, o *office) {
		t.Helper()
		done := o.handle(o.turn())
		pass(26 * time.Second)
		require.False(t, o.parked())
		pass(15 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
		o.answer("1", "yes")
		require.True(t, o.response().Success)
	})
}

func TestRunThatHasLostItsLeaseAtAQuestionLeavesItsMessage(t *testing.T) {
	t.Parallel()
	inOffice(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *office) {
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

func TestTakeoverOfATurnThatAskedRunsOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answered bool
		want     events.Code
	}{"while its question is open": {false, ""}, "behind an answer": {true, events.CodeInterrupted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := 0
			release := make(chan struct{})
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				entered++
				_, err := call.Host.Ask(ctx, tools.Question{})
				if err == nil && c.answered {
					<-release
				}
				return tools.Result{}, err
			}
			inOffice(t, bindings.EffectReplay, tool, func(t *testing.T, o *office) {
				t.Helper()
				release = make(chan struct{})
				held, lose := context.WithCancel(t.Context())
				m := o.turn()
				m.Held = held
				lost := o.handle(m)
				if c.answered {
					o.answer("1", "yes")
				}
				lose()
				synctest.Wait()
				again := *m
				again.Lease.Delivery, again.Held = 2, t.Context()
				done := o.handle(&again)
				if !c.answered {
					o.answer("1", "yes")
				}
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.Equal(t, c.want, o.response().Code)
				require.Equal(t, map[bool]int{false: 2, true: 1}[c.answered], entered)
				require.NotEmpty(t, o.heard(events.KindRunComplete))
				close(release)
				require.Equal(t, map[bool]inbound.Do{false: inbound.Leave, true: inbound.Ack}[c.answered], settled(t, lost).Do)
			})
		})
	}
}
