package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// gate is a limiter that opens after a while.
type gate struct {
	after    time.Duration
	err      error
	released int
	asked    []string
}

func (g *gate) Wait(ctx context.Context, tool, tenant string, _ target.Limits) (func(), error) {
	g.asked = append(g.asked, tool+" "+tenant)
	if err := passes(ctx, g.after); err != nil {
		return nil, err
	}
	return func() { g.released++ }, g.err
}

var one = target.Limits{Tool: target.Limit{Concurrency: 1}}

func TestWaitingForALimitIsNotPartOfTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, waits := &gate{after: time.Hour}, []bool{}
		l := inLab(t, func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			return tools.Result{}, passes(ctx, time.Second)
		})
		l.o.Limiter, l.tool.Limits, l.tool.ID = g, one, "WF/t"
		o := engine.New(l.o).Do(t.Context(), engine.Invocation{
			Call: &tools.Call{Name: "t", Turn: events.TurnID{App: "app"}}, Tool: l.tool, OnLimitWait: func(begins bool) { waits = append(waits, begins) },
		})
		require.True(t, o.Success)
		require.Equal(t, time.Hour, o.Waited)
		require.Equal(t, time.Second, o.Duration)
		require.Equal(t, []string{"WF/t app"}, g.asked)
		require.Equal(t, 1, g.released)
		require.Equal(t, []bool{true, false}, waits)
		require.NotContains(t, l.traced(), "limit")
	})
}

func TestCallThatMayNotBeginIsNotEntered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inLab(t, echo)
		l.tool.Limits = one
		l.o.Limiter = &gate{err: &events.Error{Code: events.CodeToolError, Msg: "tool_error:rate limit: in 2m"}}
		o := l.run("")
		require.Equal(t, "tool_error:rate limit: in 2m", o.Message)
		require.Equal(t, "rate limit: in 2m", o.Content)
		require.Zero(t, o.Attempts)
		require.False(t, o.Entered)

		cause := errors.New("draining")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(cause) })
		l.o.Limiter = &gate{after: time.Hour}
		o = l.do(ctx, "t", "")
		require.ErrorIs(t, o.Stopped, cause)
		require.False(t, o.Entered)
		require.Zero(t, l.calls)
	})
}

func TestLimitIsReleasedWhenTheToolIsAbandonedOrFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) {
			<-time.After(time.Hour)
			return tools.Result{Value: json.RawMessage(`"late"`)}, nil
		})
		l.o.Limiter, l.tool.Limits, l.tool.Timeout = g, one, time.Second
		o := l.run("")
		require.True(t, o.Abandoned)
		require.Equal(t, "tool_error:timeout", o.Message)
		require.Equal(t, 1, g.released)
		<-time.After(2 * time.Hour) // it returns, and its result is not used
		require.Equal(t, 1, g.released)
		require.Empty(t, l.o.Cache.(*memory).values) //nolint:forcetypeassert // the lab's own

		l = inLab(t, fails(errors.New("boom")))
		l.o.Limiter, l.tool.Limits = g, one
		l.run("")
		require.Equal(t, 2, g.released)
	})
}

func TestResultOverItsLimitIsRefusedByName(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo)
	l.tool.Limits.Output = 9
	require.True(t, l.run(`{"a":123}`).Success)
	o := l.run(`{"a":1234}`)
	require.Equal(t, events.CodeTooLarge, o.Code)
	require.Equal(t, "tool t ran, but its result has 10 bytes and its limit is 9 (limits.output)", o.Content)
	require.True(t, o.Entered)
	require.Equal(t, 1, o.Attempts)
}

func TestResultHasToFitItsSchema(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo)
	var err error
	l.tool.Output, err = model.CompileValue("t", json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	require.NoError(t, err)
	require.True(t, l.run(`{"n":1}`).Success)
	o := l.run(`{"n":[]}`)
	require.Equal(t, "tool_error:the tool ran, but its result does not fit its output schema: /n: expected integer, got array", o.Message)
	require.Equal(t, events.EffectHappened, o.EffectState)
	l.tool.Invoker = toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(`{`)}, nil
	})
	require.Equal(t, events.CodeToolError, l.run("").Code)
}

// What was checked is what is used: a text for a boolean, an object encoded twice, a key too many and
// a missing default do not reach those who use the result, nor the cache and the guards.
func TestResultIsUsedAsItsOutputSchemaHasIt(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["urgent"],"additionalProperties":false,"properties":{"urgent":{"type":"boolean"},"n":{"type":"integer","default":7},
		"inner":{"type":"object","properties":{"x":{"type":"number"}}},"status":{"type":"string"},"message":{"type":"string"}}}`
	for result, want := range map[string]string{
		`{"urgent":"false"}`:                          `{"n":7,"urgent":false}`,
		`"{\"urgent\": true}"`:                        `{"n":7,"urgent":true}`,
		`{"urgent":true,"secret_column":"x"}`:         `{"n":7,"urgent":true}`,
		`{"urgent":true,"n":"5"}`:                     `{"n":5,"urgent":true}`,
		`{"urgent":true,"n":5,"inner":{"x":"1.5"}}`:   `{"inner":{"x":1.5},"n":5,"urgent":true}`,
		`{ "urgent": true, "n": 1.0, "message": "m"}`: `{"message":"m","n":1,"urgent":true}`,
		`{ "urgent": true, "n": 12 }`:                 `{ "urgent": true, "n": 12 }`, // nothing to change
	} {
		l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) {
			return tools.Result{Value: json.RawMessage(result)}, nil
		})
		guarded := ""
		l.tool.Guards = []guards.Guard{guards.Output(func(_ context.Context, _ *tools.Call, output json.RawMessage) error {
			guarded = string(output)
			return nil
		})}
		var err error
		l.tool.Output, err = model.CompileValue("t", json.RawMessage(schema))
		require.NoError(t, err)
		o := l.run(`{}`)
		require.True(t, o.Success, result)
		require.Equal(t, want, string(o.Payload), result)
		require.Equal(t, want, guarded, result)
		o = l.run(`{}`)
		require.True(t, o.Cached)
		require.Equal(t, want, string(o.Payload), result)
	}
	for result, want := range map[string]string{
		`{"urgent":"perhaps"}`:                "/urgent: expected boolean",
		`{"urgent":1}`:                        "/urgent: expected boolean",
		`"not an object"`:                     "expected object",
		`{"n":1}`:                             "urgent",
		`{"urgent":true,"inner":{"x":"one"}}`: "inner/x",
	} {
		l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) {
			return tools.Result{Value: json.RawMessage(result)}, nil
		})
		var err error
		l.tool.Output, err = model.CompileValue("t", json.RawMessage(schema))
		require.NoError(t, err)
		o := l.run(`{}`)
		require.Equal(t, events.CodeToolError, o.Code, result)
		require.Contains(t, o.Message, want, result)
	}
}

func TestStatusOfAResultThatWasEncodedTwiceCounts(t *testing.T) {
	t.Parallel()
	l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(`"{\"status\":\"failed\",\"message\":\"no stock\"}"`)}, nil
	})
	var err error
	l.tool.Output, err = model.CompileValue("t", json.RawMessage(`{"type":"object"}`))
	require.NoError(t, err)
	o := l.run(`{}`)
	require.False(t, o.Success)
	require.Equal(t, "no stock", o.Content)
}

func TestErrorForInvalidArgumentsNamesAllViolations(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo).schema(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["b"]}`)
	o := l.run(`{"a":"secret value"}`)
	require.Equal(t, "The arguments do not fit tool t: /a: expected integer, got string (and 1 more)", o.Content)
	var payload struct {
		Message  string            `json:"message"`
		Errors   []model.Violation `json:"errors"`
		Feedback string            `json:"feedback"`
	}
	require.NoError(t, json.Unmarshal(o.Payload, &payload))
	require.Equal(t, "bad_args:bad_int:a", payload.Message)
	require.Len(t, payload.Errors, 2)
	require.Contains(t, payload.Feedback, "/b: is missing")
	require.NotContains(t, string(o.Payload), "secret value")
}

func TestErrorNamesTheParameterThatAFunctionLacks(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo).schema(`{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}`)
	l.tool.Unplaced = []string{"size"}
	require.Equal(t, "The arguments do not fit tool t: /size: is missing; expected integer. The function has no parameter size, so what is given for it does not reach it.",
		l.run(`{}`).Content)
}

func TestArgumentsOfACallAreCheckedWithoutChangingThem(t *testing.T) {
	t.Parallel()
	l := inLab(t, func(_ context.Context, call *tools.Call) (tools.Result, error) {
		data, err := call.EncodedArgs()
		return tools.Result{Value: data}, err
	}).schema(`{"type":"object","properties":{"a":{"type":"integer"}}}`)
	args := map[string]any{"a": "1"}
	call := &tools.Call{Name: "t", Args: args, ArgsJSON: json.RawMessage(`{"a":"1"}`)}
	o := engine.New(l.o).Do(t.Context(), engine.Invocation{Call: call, Tool: l.tool})
	require.Equal(t, `{"a":1}`, string(o.Payload))
	require.Equal(t, map[string]any{"a": "1"}, args)
	require.JSONEq(t, `{"a":"1"}`, string(call.ArgsJSON))
}

func TestToolSetsThePauseBeforeItIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("busy")
		l := inLab(t, fails(tools.RetryAfter(busy, 30*time.Second)))
		start := time.Now()
		require.Equal(t, "tool_error:busy", l.run("").Message)
		require.Equal(t, 30*time.Second, time.Since(start))

		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		o := l.do(ctx, "t", "")
		require.Equal(t, "tool_error:busy: it would be tried again in 30s, and the time of the call ends before", o.Message)
		require.NoError(t, o.Stopped)
		require.Equal(t, 1, o.Attempts)
		require.Zero(t, time.Since(start))

		l = inLab(t, fails(tools.RetryAfter(busy, 61*time.Second)))
		o = l.run("")
		require.Equal(t, "tool_error:busy: it asks to be tried again in 1m1s, and a call waits for 1m0s at most", o.Message)
		require.ErrorIs(t, o.Err, busy)

		l = inLab(t, fails(tools.Retryable(&events.Error{Code: events.CodeTimeout, Msg: "the answer did not come"})))
		o = l.run("")
		require.Equal(t, 1, o.Attempts, "an unknown outcome is not tried again, whatever the tool asks for")
		require.Equal(t, events.CodeTimeout, o.Code)
		require.Equal(t, "the answer did not come", o.Content)

		l = inLab(t, fails(tools.Retryable(context.DeadlineExceeded)))
		require.Equal(t, 2, l.run("").Attempts, "for example of dialing")
	})
}

func TestGuardThatIsInterruptedDecidesNothing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	cause := errors.New("draining")
	l := inLab(t, echo)
	l.tool.Guards = []guards.Guard{guards.Input(func(ctx context.Context, _ *tools.Call) error {
		stop(cause)
		return ctx.Err()
	})}
	o := l.do(ctx, "t", "")
	require.ErrorIs(t, o.Stopped, cause)
	require.False(t, o.Entered)
}

func TestResultInSpiteOfAStopIsStillGuarded(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	l := inLab(t, func(_ context.Context, call *tools.Call) (tools.Result, error) {
		stop()
		return echo(nil, call) //nolint:staticcheck // echo does not look at it
	})
	l.tool.Guards = []guards.Guard{guards.Output(func(ctx context.Context, _ *tools.Call, _ json.RawMessage) error { return ctx.Err() })}
	require.True(t, l.do(ctx, "t", "").Success)
}

func TestFutureIsTheSameCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inLab(t, func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			return tools.Result{Value: json.RawMessage(`1`)}, passes(ctx, time.Minute)
		})
		l.tool.Timeout = time.Hour
		e, inv := engine.New(l.o), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: l.tool}
		f := e.Go(t.Context(), inv)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		o := f.Wait(short)
		require.ErrorIs(t, o.Stopped, context.DeadlineExceeded)
		require.True(t, o.Entered, "it is unknown")
		require.Equal(t, "1", string(f.Wait(t.Context()).Payload))
		gone := l.traced()
		l.o.Cache = &memory{}
		require.True(t, engine.New(l.o).Do(t.Context(), inv).Success)
		require.Equal(t, gone, l.traced())

		l.o.Cache = nil
		f = engine.New(l.o).Go(short, inv)
		require.Error(t, f.Wait(t.Context()).Stopped, "its own context ends the call")
	})
}

func TestFutureOutlivesATracerThatPanics(t *testing.T) {
	t.Parallel()
	e := engine.New(engine.Options{Tracer: broken{}})
	for _, call := range []*tools.Call{nil, {Name: "t"}} {
		o := e.Go(t.Context(), engine.Invocation{Call: call}).Wait(t.Context())
		require.Equal(t, "tool_error:panic: out of order", o.Message)
	}
}

// broken is a tracer that fails.
type broken struct{}

func (broken) Emit(context.Context, string, ...slog.Attr) { panic("out of order") }

func TestLogTracerLogsNoTextOfTheTool(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	level := &slog.LevelVar{}
	l := inLab(t, fails(errors.New("4711")))
	l.o.Tracer = engine.LogTracer(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
	l.run(`{"name of a person":1}`)
	require.Empty(t, out.String())
	level.Set(slog.LevelDebug)
	l.run(`{"name of a person":1}`)
	require.Contains(t, out.String(), `msg="tool call" phase=args.parse.ok tool_name=t keys=1`)
	require.Contains(t, out.String(), `phase=tool.invoke.fail tool_name=t attempt=1`)
	require.NotContains(t, out.String(), "4711")
	require.NotContains(t, out.String(), "person")
}

func TestLogTracerDistinguishesCalls(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	call := &tools.Call{Name: "t", CallID: "turn-7", Turn: events.TurnID{Chat: "chat-3"}}
	engine.New(engine.Options{Tracer: engine.LogTracer(log)}).Do(t.Context(), engine.Invocation{Call: call})
	require.NotEmpty(t, out.String())
	for line := range strings.Lines(out.String()) {
		require.Contains(t, line, "chat=chat-3 turn=turn-7")
	}
}

func TestSecretAnswersAreInNoTrace(t *testing.T) {
	t.Parallel()
	secret := &redact.SecretAnswers{}
	secret.AddSecret([]byte(`"swordfish-4711"`), nil)
	l := inLab(t, fails(errors.New("no swordfish-4711 here")))
	engine.New(l.o).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t", Secrets: secret}, Tool: l.tool})
	traced := l.traced()
	require.NotContains(t, traced[len(traced)-1], "swordfish")
}
