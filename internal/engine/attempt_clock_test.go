package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

// anyHost is a field name that leaves Host to the method.
type anyHost = tools.Host

// waiter is a host whose Dismiss takes a day, with the clock stopped. It counts the attempts.
type waiter struct {
	anyHost

	clock    *engine.Clock
	attempts *int
}

func (w waiter) Host(c *engine.Clock) tools.Host {
	*w.attempts++
	return waiter{nil, c, w.attempts}
}

func (w waiter) Dismiss(ctx context.Context, _ string) error {
	w.clock.Stop()
	defer w.clock.Go()
	return rest(ctx, 24*time.Hour)
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queuing is a tool that waits a second before it is entered.
type queuing struct{ toolFunc }

func (queuing) Queues() bool { return true }

func (q queuing) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	if err := rest(ctx, time.Second); err != nil {
		return tools.Result{}, err
	}
	call.Enter()
	return q.toolFunc(ctx, call)
}

func TestTimeOfAnAttemptIsPausedWhileItWaitsForAPerson(t *testing.T) {
	t.Parallel()
	asks := func(before, after time.Duration) toolFunc {
		return func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			err := errors.Join(rest(ctx, before), call.Host.Dismiss(ctx, ""), call.Host.Dismiss(ctx, ""), rest(ctx, after))
			return tools.Result{Value: json.RawMessage(`1`)}, err
		}
	}
	for name, wrap := range map[string]func(toolFunc) tools.Invoker{
		"entered immediately": func(f toolFunc) tools.Invoker { return f },
		"queues":              func(f toolFunc) tools.Invoker { return queuing{f} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				run := func(before, after time.Duration) engine.Outcome {
					return engine.New(engine.Options{Timeout: 10 * time.Second}).Do(t.Context(), engine.Invocation{
						Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: wrap(asks(before, after))}, Hosts: waiter{attempts: new(int)},
					})
				}
				out := run(4*time.Second, 4*time.Second)
				require.Equal(t, events.StatusOK, out.Status)
				require.Equal(t, 8*time.Second, out.Duration)
				require.Equal(t, 48*time.Hour, out.Paused)

				out = run(4*time.Second, 7*time.Second)
				require.Equal(t, events.CodeTimeout, out.Code, "the rest of its time counts on")
				require.Equal(t, 10*time.Second, out.Duration)
			})
		})
	}
}

// TestWaitingForAPersonInTheQueueCountsOnce is what a tool does that needs the answer before it can begin.
func TestWaitingForAPersonInTheQueueCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := &queue{wait: time.Minute, run: takes(4 * time.Second)}
		asks := asksFirst{tool}
		out := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{
			Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: asks, Timeout: 5 * time.Second}, Hosts: waiter{attempts: new(int)},
		})
		require.NoError(t, out.Err)
		require.Equal(t, 24*time.Hour, out.Paused)
		require.Equal(t, time.Minute, out.Waited)
		require.Equal(t, 4*time.Second, out.Duration)
	})
}

// asksFirst asks before it queues.
type asksFirst struct{ *queue }

func (a asksFirst) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	if err := call.Host.Dismiss(ctx, ""); err != nil {
		return tools.Result{}, err
	}
	return a.queue.Invoke(ctx, call)
}

func TestTwoConcurrentWaitsStopTheClockOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			both := make(chan error, 2)
			ask := func() { both <- call.Host.Dismiss(ctx, "") }
			go ask()
			if err := rest(ctx, time.Hour); err != nil {
				return tools.Result{}, err
			}
			go ask()
			err := errors.Join(<-both, <-both)
			_, known := tools.End(ctx)
			return tools.Result{}, errors.Join(err, rest(ctx, time.Second), map[bool]error{false: errors.New("no deadline")}[known])
		}
		out := engine.New(engine.Options{Timeout: 2 * time.Second}).Do(t.Context(), engine.Invocation{
			Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: toolFunc(tool)}, Hosts: waiter{attempts: new(int)},
		})
		require.NoError(t, out.Err)
		require.Equal(t, 25*time.Hour, out.Paused)
		require.Equal(t, time.Second, out.Duration)
	})
}

// The context of an attempt has no deadline, as a question puts its end off: a later limit of a
// tool's own would never end what it bounds.
func TestLimitOfAToolThatIsLongerThanItsTimeEndsItsQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			bounded, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return tools.Result{}, call.Host.Dismiss(bounded, "")
		}
		out := engine.New(engine.Options{Timeout: 2 * time.Second}).Do(t.Context(), engine.Invocation{
			Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: toolFunc(tool)}, Hosts: waiter{attempts: new(int)},
		})
		require.ErrorIs(t, out.Err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, out.Paused)
	})
}

func TestEachAttemptHasASeparateHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hosts []tools.Host
		tool := func(_ context.Context, call *tools.Call) (tools.Result, error) {
			hosts = append(hosts, call.Host)
			return tools.Result{}, tools.Retryable(errors.New("again"))
		}
		attempts := 0
		out := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{
			Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: toolFunc(tool), MaxAttempts: 3}, Hosts: waiter{attempts: &attempts},
		})
		require.Equal(t, 3, out.Attempts)
		require.Equal(t, 3, attempts)
		require.Len(t, hosts, 3)
		require.NotEqual(t, hosts[0], hosts[1])
	})
}

func TestParkedRunIsStoppedAndNotAnAttemptThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, park := context.WithCancelCause(t.Context())
		tool := func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			park(tools.ErrParked)
			<-ctx.Done()
			return tools.Result{}, tools.Retryable(context.Cause(ctx))
		}
		out := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: toolFunc(tool), MaxAttempts: 3}})
		require.ErrorIs(t, out.Stopped, tools.ErrParked)
		require.Equal(t, 1, out.Attempts)
		require.Empty(t, out.Code)
	})
}
