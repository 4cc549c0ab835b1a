package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

// queue is a tool whose calls wait before they run.
type queue struct {
	wait time.Duration // in the queue
	run  func(ctx context.Context, call *tools.Call) error
}

func (q *queue) Queues() bool { return true }

func (q *queue) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	if err := passes(ctx, q.wait); err != nil {
		return tools.Result{}, err
	}
	call.Enter()
	call.Enter() // a second time changes nothing
	return tools.Result{}, q.run(ctx, call)
}

// passes waits for d or the end of ctx.
func passes(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func takes(d time.Duration) func(context.Context, *tools.Call) error {
	return func(ctx context.Context, _ *tools.Call) error { return passes(ctx, d) }
}

func TestWaitingInAQueueIsNotPartOfTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := func(q *queue) engine.Outcome {
			tool := engine.Tool{Invoker: q, Timeout: 5 * time.Second, MaxAttempts: 9}
			return engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: tool})
		}
		start := time.Now()
		o := run(&queue{wait: time.Hour, run: takes(4 * time.Second)})
		require.True(t, o.Success, o.Content)
		require.True(t, o.Entered)
		require.Equal(t, time.Hour+4*time.Second, time.Since(start))
		require.Equal(t, 4*time.Second, o.Duration)
		require.Equal(t, time.Hour, o.Waited)

		start = time.Now()
		o = run(&queue{wait: time.Hour, run: takes(time.Minute)})
		require.Equal(t, events.CodeTimeout, o.Code)
		require.Equal(t, "Tool t did not end within 5s: its effect may or may not have happened.", o.Content)
		require.True(t, o.Entered)
		require.Equal(t, 1, o.Attempts)
		require.Equal(t, time.Hour+5*time.Second, time.Since(start))
		require.Equal(t, 5*time.Second, o.Duration)
	})
}

func TestRunStoppedInTheQueueWasNotEntered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("draining")
		stopAfter := func(d time.Duration, tool tools.Invoker) engine.Outcome {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(d, func() { cancel(cause) })
			o := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool, MaxAttempts: 2}})
			require.ErrorIs(t, o.Stopped, cause)
			return o
		}
		o := stopAfter(time.Second, &queue{wait: time.Hour, run: takes(0)})
		require.False(t, o.Entered)
		require.Zero(t, o.Duration)
		require.Equal(t, time.Second, o.Waited)
		require.True(t, stopAfter(time.Second, &queue{run: takes(time.Hour)}).Entered)

		// It ran before, and waits for its second attempt.
		again := &queue{}
		again.run = func(context.Context, *tools.Call) error {
			again.wait = time.Hour
			return tools.Retryable(errors.New("busy"))
		}
		require.True(t, stopAfter(time.Minute, again).Entered)
	})
}

func TestAbandonedCallOfAQueueMayRunYet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		o := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: deaf{}}})
		require.Error(t, o.Stopped)
		require.True(t, o.Abandoned)
		require.True(t, o.Entered)
		<-time.After(2 * time.Hour) // it enters without effect on the outcome
		synctest.Wait()
	})
}

// deaf is a tool whose queue ignores the context and enters the call late.
type deaf struct{}

func (deaf) Queues() bool { return true }

func (deaf) Invoke(_ context.Context, call *tools.Call) (tools.Result, error) {
	<-time.After(time.Hour)
	call.Enter()
	return tools.Result{}, nil
}

func TestToolIsNotEnteredWhenItsContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("cancelled")
	cancel(cause)
	tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { panic("entered") })
	o := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool}})
	require.ErrorIs(t, o.Stopped, cause)
	require.False(t, o.Entered)
	require.Zero(t, o.Attempts)
}
