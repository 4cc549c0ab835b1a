package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestGoldenTraces(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo).schema(`{"type":"object","properties":{"x":{"type":"integer"},"k":{"type":"string","default":"v"}}}`)
	parsed := []string{"tool.resolve.start", "tool.resolve.ok", "args.parse.start", "args.parse.ok keys=[k x]"}
	rest := []string{
		"guard.input.start", "guard.input.ok", "tool.invoke.start", "tool.invoke.ok attempts=1", "guard.output.start", "guard.output.ok",
	}
	require.JSONEq(t, `{"k":"v","x":1}`, string(l.run(`{"x":"1"}`).Payload))
	require.Equal(t, concat(parsed, "cache.miss", rest, "cache.store"), l.traced(), "12 events")
	require.True(t, l.run(`{"x":"1"}`).Cached)
	require.Equal(t, concat(parsed, "cache.hit"), l.traced(), "5 events")
	l.o.Cache = nil
	l.run(`{"x":"1"}`)
	require.Equal(t, concat(parsed, rest), l.traced(), "10 events")
}

func concat(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// TestEveryErrorHasItsMessageItsAttemptsAndItsTrace is the table of errors of docs/engine.md.
func TestEveryErrorHasItsMessageItsAttemptsAndItsTrace(t *testing.T) {
	t.Parallel()
	user := &events.Error{Code: events.CodeUserError, Op: "call t", Msg: "no such city"}
	for name, c := range map[string]struct {
		tool     func(context.Context, *tools.Call) (tools.Result, error)
		guard    guard
		call     string // "" = t
		raw      string
		message  string
		code     events.Code
		attempts int
		effect   events.EffectState
		traced   string // the end of the trace
	}{
		"unknown tool": {call: "nope", message: "unknown_tool", code: events.CodeUnknownTool, traced: "tool.resolve.start, tool.resolve.fail"},
		"int":          {raw: `{"i":"x"}`, message: "bad_args:bad_int:i", code: events.CodeBadArgs, traced: "args.parse.fail err=bad_int:i"},
		"bool":         {raw: `{"b":"yes"}`, message: "bad_args:bad_bool:b", code: events.CodeBadArgs, traced: "args.parse.fail err=bad_bool:b"},
		"str":          {raw: `{"s":1}`, message: "bad_args:bad_str:s", code: events.CodeBadArgs, traced: "args.parse.fail err=bad_str:s"},
		"null is not replaced by a default": {
			raw: `{"d":null}`, message: "bad_args:bad_int:d", code: events.CodeBadArgs, traced: "args.parse.fail err=bad_int:d",
		},
		"nested":   {raw: `{"o":{"n":["1",true]}}`, message: "bad_args:bad_int:o/n/1", code: events.CodeBadArgs, traced: "args.parse.fail err=bad_int:o/n/1"},
		"the rest": {raw: `{"i":11}`, message: "bad_args:i: expected at most 10 (rule maximum), got number.", code: events.CodeBadArgs, traced: "got number."},
		"input guard": {
			guard: guard{input: func(*tools.Call) error { return refuse("not now") }}, message: "guardrail:not now", code: events.CodeGuardrail,
			traced: "cache.miss, guard.input.start, guard.input.block reason=not now",
		},
		"a guard that panics": {
			guard: guard{input: func(*tools.Call) error { panic("4711") }}, message: "guardrail:a guard broke, so the call is refused",
			code: events.CodeGuardrail, traced: "guard.input.block reason=a guard broke, so the call is refused",
		},
		"user error": {
			tool: fails(user), message: "user_error:no such city", code: events.CodeUserError, attempts: 1,
			traced: "tool.invoke.start, tool.invoke.user_error attempt=1 err=no such city",
		},
		"retries exhausted, without a closing event": {
			tool: fails(tools.Retryable(errors.New("busy"))), message: "tool_error:busy", code: events.CodeToolError, attempts: 2,
			traced: "tool.invoke.start, tool.invoke.retryable attempt=1 err=busy, tool.invoke.retryable attempt=2 err=busy",
		},
		"a timeout of the tool's own": {
			tool: fails(context.DeadlineExceeded), message: "tool_error:timeout", code: events.CodeTimeout, attempts: 1,
			traced: "tool.invoke.start, tool.invoke.timeout attempt=1",
		},
		"any other": {
			tool: fails(errors.New("boom x")), message: "tool_error:boom x", code: events.CodeToolError, attempts: 1,
			traced: "tool.invoke.start, tool.invoke.fail attempt=1 err=boom x",
		},
		"a tool that cannot start": {
			tool:    fails(&events.Error{Code: events.CodeToolError, Op: "start", Msg: "it was started within itself"}),
			message: "tool_error:it was started within itself", code: events.CodeToolError, attempts: 1,
			traced: "tool.invoke.start, tool.invoke.fail attempt=1 err=it was started within itself",
		},
		"a guard's error inside a tool": {
			tool: fails(refuse("mine")), message: "tool_error:mine", code: events.CodeToolError, attempts: 1, traced: "tool.invoke.fail attempt=1 err=mine",
		},
		"a guard's code inside a tool": {
			tool: fails(tools.Retryable(&events.Error{Code: events.CodeGuardrail, Msg: "theirs"})), message: "tool_error:theirs", code: events.CodeToolError,
			attempts: 2, traced: "tool.invoke.retryable attempt=1 err=theirs, tool.invoke.retryable attempt=2 err=theirs",
		},
		"a server that lacks the tool": {
			tool: fails(&events.Error{Code: events.CodeUnknownTool, Msg: "server s has no tool"}), message: "unknown_tool", code: events.CodeUnknownTool,
			attempts: 1, traced: "tool.invoke.fail attempt=1 err=server s has no tool",
		},
		"a panic": {
			tool:    func(context.Context, *tools.Call) (tools.Result, error) { panic("oh no") },
			message: "tool_error:panic: oh no", code: events.CodeToolError, attempts: 1, traced: "tool.invoke.fail attempt=1 err=panic: oh no",
			effect: events.EffectInDoubt,
		},
		"a result that cannot be used": {
			tool: fails(tools.Returned(errors.New("no JSON"))), message: "tool_error:no JSON", code: events.CodeToolError, attempts: 1,
			effect: events.EffectHappened, traced: "tool.invoke.fail attempt=1 err=no JSON",
		},
		"arguments that the tool itself refuses": {
			tool:    fails(&events.Error{Code: events.CodeBadArgs, Msg: "bad_args:city: expected string"}),
			message: "bad_args:city: expected string", code: events.CodeBadArgs, attempts: 1, traced: "tool.invoke.fail attempt=1 err=city: expected string",
		},
		"output guard": {
			guard: guard{output: func(json.RawMessage) error { return refuse("too odd") }}, message: "guardrail:too odd", code: events.CodeGuardrail,
			attempts: 1, effect: events.EffectHappened, traced: "tool.invoke.ok attempts=1, guard.output.start, guard.output.block reason=too odd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.tool == nil {
				c.tool = echo
			}
			if c.call == "" {
				c.call = "t"
			}
			l := inLab(t, c.tool).schema(`{"type":"object","properties":{"i":{"type":"integer","maximum":10},"b":{"type":"boolean"},
				"s":{"type":"string"},"d":{"type":"integer","default":1},"o":{"properties":{"n":{"items":{"type":"integer"}}}}}}`)
			l.tool.Guards = []guards.Guard{c.guard}
			o := l.do(t.Context(), c.call, c.raw)
			require.Equal(t, c.message, o.Message)
			require.Equal(t, c.code, o.Code)
			require.Equal(t, c.attempts, o.Attempts)
			require.Equal(t, c.effect, o.EffectState)
			require.Equal(t, c.attempts, l.calls)
			require.Equal(t, c.call, o.ToolName)
			require.Equal(t, events.StatusError, o.Status)
			require.False(t, o.Success)
			require.False(t, o.Cached)
			require.NotEmpty(t, o.Content)
			require.True(t, strings.HasSuffix(strings.Join(l.traced(), ", "), c.traced), "%s", l.traced())
			require.Empty(t, l.o.Cache.(*memory).values, "failures are not cached") //nolint:forcetypeassert // the lab's own
		})
	}
}

func TestCacheKeyIsTheTextOfTheArguments(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo)
	l.run(`{"x":1}`)
	l.run(`{ "x":1 }`)
	require.Equal(t, 2, l.calls)
}

func TestCacheHitAsksNoGuardAndRunsNothing(t *testing.T) {
	t.Parallel()
	l, asked := inLab(t, echo), 0
	l.tool.Guards = []guards.Guard{guard{input: func(*tools.Call) error {
		if asked++; asked > 1 {
			return refuse("asked again")
		}
		return nil
	}}}
	require.True(t, l.run(`{"x":1}`).Success)
	l.traced()
	o := l.run(`{"x":1}`)
	require.True(t, o.Cached)
	require.True(t, o.Success)
	require.False(t, o.Entered)
	require.Zero(t, o.Attempts)
	require.Equal(t, `{"x":1}`, string(o.Payload))
	require.Equal(t, 1, l.calls)
	require.Equal(t, "cache.hit", l.traced()[4])
}

func TestUnknownArgumentsPassThrough(t *testing.T) {
	t.Parallel()
	l := inLab(t, echo).schema(`{"type":"object","properties":{"x":{"type":"integer"}}}`)
	require.Equal(t, `{"extra":7,"x":2}`, string(l.run(`{"x":"2","extra":7}`).Payload))
}

func TestAttemptAfterARetryableErrorSucceeds(t *testing.T) {
	t.Parallel()
	n := 0
	l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) {
		if n++; n == 1 {
			return tools.Result{}, tools.Retryable(errors.New("busy"))
		}
		return tools.Result{Value: json.RawMessage(`{"x":1}`)}, nil
	})
	o := l.run("")
	require.Equal(t, 2, o.Attempts)
	require.JSONEq(t, `{"x":1}`, string(o.Payload))
	require.Contains(t, l.traced(), "tool.invoke.ok attempts=2")
}

func TestTimeoutIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inLab(t, func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, tools.Retryable(ctx.Err())
		})
		l.tool.MaxAttempts, l.tool.Timeout = 10, 200*time.Millisecond
		o := l.run("")
		require.Equal(t, "tool_error:timeout", o.Message)
		require.Equal(t, 1, o.Attempts)
		traced := l.traced()
		require.Equal(t, "tool.invoke.timeout attempt=1", traced[len(traced)-1])
	})
}
