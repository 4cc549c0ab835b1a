package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// Questions and answers of runs that park.

func TestAnswerThatComesWhileItParksWakesTheOwner(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks("", ""), func(t *testing.T, o *bubble) {
		t.Helper()
		o.ParkAfter = time.Second
		done := o.handle(o.turn())
		require.Equal(t, inbound.Ack, o.Handle(t.Context(), o.answers("1", "yes")).Do) // its live copy is lost
		pass(1500 * time.Millisecond)
		require.Equal(t, 1, o.count("questions_closed_total", "answered"), "it looked when it could not park")
		pass(time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked(), "as the next epoch")
		o.answer("2", "no")
		require.Equal(t, []any{"yes", "no"}, o.response().Payload)
	})
}

func TestSeveralOpenQuestionsAreAnsweredInAnyOrderAcrossParks(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		runs.Add(1)
		names := []string{"a", "b", "c"}
		values, errs := make([]json.RawMessage, 3), make(chan error, 3)
		for i, name := range names {
			go func() {
				a, err := call.Host.Ask(ctx, tools.Question{Name: name})
				values[i] = a.Value
				errs <- err
			}()
		}
		if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
			return tools.Result{}, err
		}
		value, err := json.Marshal(values)
		return tools.Result{Value: value}, err
	}
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		first := o.handle(o.turn())
		require.Equal(t, int32(1), o.slots.away.Load(), "one slot, however many wait")
		o.answer("c", "3")
		pass(11 * time.Second)
		require.Equal(t, inbound.Ack, settled(t, first).Do)
		require.True(t, o.parked())
		second := o.handle(o.answers("a", "1"))
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
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
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
	inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
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

func TestTakeoverOfATurnThatAskedRunsOnlyWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answered bool
		want     events.Code
	}{"while its question is open": {false, ""}, "after an answer": {true, events.CodeInterrupted}} {
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
			inBubble(t, bindings.EffectReplay, tool, func(t *testing.T, o *bubble) {
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
