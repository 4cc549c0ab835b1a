package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toolFunc adapts a function to tools.Invoker.
type toolFunc func(ctx context.Context, call *tools.Call) (tools.Result, error)

func (f toolFunc) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	return f(ctx, call)
}

func returns(value string) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(value)}, nil
	}
}

func ExampleEngine_Do() {
	e := engine.New(engine.Options{})
	o := e.Do(context.Background(), engine.Invocation{Call: &tools.Call{Name: "query"}, Tool: engine.Tool{Invoker: returns(`{"status":"success","message":"3 rows"}`)}})
	fmt.Println(o.Status, o.Success, o.Content)
	// Output: ok true 3 rows
}

// TestContentAndSuccessFollowTheResult follows MozaiksAI, with our stricter list of failures.
func TestContentAndSuccessFollowTheResult(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		success bool
		content string
	}{
		``:                                       {true, "Tool t completed successfully."},
		`null`:                                   {true, "Tool t completed successfully."},
		`["y"]`:                                  {true, "Tool t completed successfully."},
		`"b"`:                                    {true, "Tool t completed successfully."},
		`{"n":3}`:                                {true, "Tool t completed successfully."},
		`{"status":"Success-ish"}`:               {true, "Success-ish"},
		`{"status":"FAILED","message":"no"}`:     {false, "no"},
		`{"status":"error"}`:                     {false, "error"},
		`{"status":"schema_validation_error"}`:   {false, "schema_validation_error"},
		`{"status":"Cancelled"}`:                 {false, "Cancelled"},
		`{"status":"x","agent_message":"hi"}`:    {true, "hi"},
		`{"message":"","status":"done"}`:         {true, "done"},
		`{"message":"  ","status":"done"}`:       {true, "Tool t completed successfully."},
		`{"message":{"a":1},"status":"done"}`:    {true, "Tool t completed successfully."},
		`{"message":0,"agent_message":[]}`:       {true, "Tool t completed successfully."},
		`{"message":["x"],"status":"cancelled"}`: {false, "Tool t reported status ok."},
	} {
		o := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: returns(value)}})
		require.Equal(t, events.StatusOK, o.Status, value)
		require.Equal(t, want.success, o.Success, value)
		require.Equal(t, want.content, o.Content, value)
		require.Equal(t, 1, o.Attempts)
		require.True(t, json.Valid(o.Payload), value)
	}
}

func TestErrorsBecomeCodedOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		code    events.Code
		content string
	}{
		"plain":     {errors.New("boom x"), events.CodeToolError, "boom x"},
		"typed":     {&events.Error{Code: events.CodeBadArgs, Msg: "needs must"}, events.CodeBadArgs, "needs must"},
		"wrapped":   {fmt.Errorf("call: %w", &events.Error{Code: events.CodeUserError, Msg: "no"}), events.CodeUserError, "no"},
		"blank":     {errors.New(" "), events.CodeToolError, "Tool t reported status error."},
		"retryable": {tools.Retryable(errors.New("busy")), events.CodeToolError, "busy"},
	} {
		tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, c.err })
		o := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool}})
		require.Equal(t, events.StatusError, o.Status, name)
		require.False(t, o.Success, name)
		require.Equal(t, c.code, o.Code, name)
		require.Equal(t, c.content, o.Content, name)
	}
}

func TestPanicIsAToolErrorWithoutItsStackInTheText(t *testing.T) {
	t.Parallel()
	tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { panic("oh no") })
	o := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool}})
	require.Equal(t, events.CodeToolError, o.Code)
	require.Equal(t, "panic: oh no", o.Content)
	require.Equal(t, "tool_error:panic: oh no", o.Message)
	require.NotContains(t, string(o.Payload), "goroutine")
	var panicked *tools.PanicError
	require.ErrorAs(t, o.Err, &panicked)
	require.Contains(t, string(panicked.Stack), "goroutine")
}

func TestOnlyRetryableErrorsAreTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := func(err error, attempts int) engine.Outcome {
			n := 0
			tool := toolFunc(func(_ context.Context, c *tools.Call) (tools.Result, error) {
				n++
				require.Equal(t, n, c.Attempt)
				if n == 3 {
					return tools.Result{}, nil
				}
				return tools.Result{}, err
			})
			return engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool, MaxAttempts: attempts}})
		}
		require.Equal(t, 3, run(tools.Retryable(errors.New("busy")), 5).Attempts)
		require.Equal(t, 2, run(tools.Retryable(errors.New("busy")), 2).Attempts)
		require.Equal(t, 1, run(tools.Retryable(errors.New("busy")), 0).Attempts)
		require.Equal(t, 1, run(errors.New("broken"), 5).Attempts)
	})
}

func TestTimeoutIsNeverRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, tools.Retryable(ctx.Err())
		})
		o := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool, MaxAttempts: 9, Timeout: time.Second}})
		require.Equal(t, events.CodeTimeout, o.Code)
		require.Equal(t, "Tool t did not end within 1s: its effect may or may not have happened.", o.Content)
		require.JSONEq(t, `{"status":"error","message":"tool_error:timeout","code":"timeout"}`, string(o.Payload))
		require.True(t, o.Entered)
		require.Equal(t, 1, o.Attempts)
	})
}

// F04: see docs/faults.md.
func TestToolThatIgnoresItsContextIsAbandonedAndItsLateReturnCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var abandoned, late atomic.Int32
		e := engine.New(engine.Options{
			OnAbandoned: func(string) { abandoned.Add(1) }, OnLate: func(string) { late.Add(1) },
		})
		tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
			time.Sleep(time.Hour) //nolint:forbidigo // the clock is synctest's
			return tools.Result{}, nil
		})
		start := time.Now()
		o := e.Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool, Timeout: time.Second}})
		require.Equal(t, events.CodeTimeout, o.Code)
		require.Equal(t, events.EffectInDoubt, o.EffectState)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, int32(1), abandoned.Load())
		require.Zero(t, late.Load())
		time.Sleep(2 * time.Hour) //nolint:forbidigo // the clock is synctest's
		synctest.Wait()
		require.Equal(t, int32(1), late.Load())
	})
}

func TestStoppedRunNamesTheCauseAndAResultInSpiteOfItCounts(t *testing.T) {
	t.Parallel()
	cause := errors.New("draining")
	for _, obeys := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		tool := toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			cancel(cause)
			if obeys {
				return tools.Result{}, ctx.Err()
			}
			return tools.Result{}, nil
		})
		o := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool}})
		require.True(t, o.Entered)
		require.Equal(t, !obeys, o.Success)
		require.Equal(t, obeys, errors.Is(o.Stopped, cause))
	}
}

func TestDelayGrowsAndIsBounded(t *testing.T) {
	t.Parallel()
	for attempt := range 100 {
		d := engine.Delay(attempt)
		require.LessOrEqual(t, d, 5*time.Second)
		require.GreaterOrEqual(t, d, 50*time.Millisecond)
	}
	require.GreaterOrEqual(t, engine.Delay(10), 2500*time.Millisecond)
}

func TestErrorsThatCannotBeLookedAtAndVanishingToolsAreOutcomes(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]toolFunc{
		"nil *events.Error": func(context.Context, *tools.Call) (tools.Result, error) {
			var e *events.Error
			return tools.Result{}, e
		},
		"panic:": func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, badError{} },
		"Goexit": func(context.Context, *tools.Call) (tools.Result, error) {
			runtime.Goexit()
			return tools.Result{}, nil
		},
	} {
		o := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool}})
		require.Equal(t, events.CodeToolError, o.Code, name)
		require.Contains(t, o.Content, name)
	}
}

// badError panics when it is looked at.
type badError struct{}

func (badError) Error() string { panic("bad") }

func TestStopBetweenAttemptsIsNotAnOutcomeOfTheTool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("draining")
		ctx, stop := context.WithCancelCause(t.Context())
		tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
			time.AfterFunc(time.Millisecond, func() { stop(cause) })
			return tools.Result{}, tools.Retryable(errors.New("busy"))
		})
		o := engine.New(engine.Options{}).Do(ctx, engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: engine.Tool{Invoker: tool, MaxAttempts: 9}})
		require.ErrorIs(t, o.Stopped, cause)
	})
}
