package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// inRuledBubble is inBubble for a tool with these lines in its manifest.
func inRuledBubble(t *testing.T, rules string, tool tools.Invoker, o engine.Options, test func(t *testing.T, o *bubble)) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "WF")
	require.NoError(t, os.Mkdir(dir, 0o755))
	manifest := "models: {M: {type: object}}\nagents: {A: {model: M}}\ntools:\n  - {name: t, agent: A, kind: go, " + rules + "}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(manifest), 0o600))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	for _, d := range set.Diagnostics() {
		require.NotEqual(t, diag.SeverityError, d.Severity, d.String())
	}
	inBubble(t, bindings.EffectUnsafe, nil, func(t *testing.T, bubble *bubble) {
		t.Helper()
		bubble.Bindings = func() *bindings.Set { return set }
		bubble.Tool = func(*bindings.Binding) (tools.Invoker, error) { return tool, nil }
		bubble.Engine = engine.New(o)
		test(t, bubble)
	})
}

func entered(*testing.T) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, errors.New("entered") }
}

func TestCallThatAGuardRefusesEndsItsTurn(t *testing.T) {
	t.Parallel()
	rules := `guards: [{on: input, when: "args.n >= 1", message: "n is too large"}]`
	inRuledBubble(t, rules, entered(t), engine.Options{}, func(t *testing.T, o *bubble) {
		t.Helper()
		require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
		r := o.response()
		require.Equal(t, events.CodeGuardrail, r.Code)
		require.Equal(t, events.StatusError, r.Status)
		require.Zero(t, r.Attempts)
		require.Equal(t, "A guard refused the call of tool t: n is too large", r.Content)
		require.Equal(t, map[string]any{"status": "error", "message": "guardrail:n is too large", "code": "guardrail"}, r.Payload)
		require.Equal(t, 1, o.count("turns_total", "guardrail"))
	})
}

func TestArgumentsThatTheToolsOwnSchemaRefusesEndTheTurnAsBadArgs(t *testing.T) {
	t.Parallel()
	rules := `input: {type: object, properties: {n: {type: string}}}`
	inRuledBubble(t, rules, entered(t), engine.Options{}, func(t *testing.T, o *bubble) {
		t.Helper()
		require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
		r := o.response()
		require.Equal(t, events.CodeBadArgs, r.Code)
		require.Equal(t, "The arguments do not fit tool t: /n: expected string, got number", r.Content)
	})
}

func TestFileThatAToolCannotReadIsNamedInTheLogAlone(t *testing.T) {
	t.Parallel()
	failing := func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{}, &events.Error{
			Code: events.CodeToolError, Msg: "a file cannot be read",
			Err: &target.FileError{File: "/run/secrets/shop", Err: os.ErrNotExist},
		}
	}
	inRuledBubble(t, "timeout: 1s", toolFunc(failing), engine.Options{}, func(t *testing.T, o *bubble) {
		t.Helper()
		var log bytes.Buffer
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
		require.Equal(t, "a file cannot be read", o.response().Content)
		require.Contains(t, log.String(), `file=/run/secrets/shop why="file does not exist"`)
	})
}

// knower is a tool that knows its effect.
type knower struct {
	toolFunc

	effect string
}

func (knower) Describe(context.Context) (tools.Description, error) {
	return tools.Description{}, errors.New("a turn does not ask for this")
}

func (k knower) Known() (tools.Description, bool) {
	return tools.Description{Effect: k.effect}, k.effect != ""
}

func TestEffectThatTheToolKnowsIsClaimedUnlessTheManifestDeclaresOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rules, known, want string }{
		{"timeout: 1s", "idempotent", "idempotent"},
		{"timeout: 1s", "", "unsafe"},
		{"effect: keyed", "idempotent", "keyed"},
		{"effect: unsafe", "idempotent", "unsafe"},
	} {
		inRuledBubble(t, c.rules, knower{nothing, c.known}, engine.Options{}, func(t *testing.T, o *bubble) {
			t.Helper()
			require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn())).Do)
			claim, err := o.store.Last(t.Context(), o.key.Public(events.KindToolCall))
			require.NoError(t, err)
			require.Equal(t, c.want, claim.Meta.Effect, "%+v", c)
		})
	}
}

func TestResultOfAnEarlierTurnIsUsedAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		calls++
		return tools.Result{Value: json.RawMessage(`{"message":"found"}`)}, nil
	})
	for effect, want := range map[string]int{"effect: none, cache: 1m": 1, "effect: none": 3} {
		calls = 0
		inRuledBubble(t, effect, tool, engine.Options{Cache: engine.NewLRU(0)}, func(t *testing.T, o *bubble) {
			t.Helper()
			for _, turn := range []string{"1", "2", "3"} {
				require.Equal(t, inbound.Ack, settled(t, o.handle(o.turn(func(e *events.StructuredOutputReady) { e.Turn = turn }))).Do)
				o.key = subjects.TurnKey("app", "chat", "", turn)
				require.Equal(t, "found", o.response().Content)
			}
			require.Equal(t, want, calls, effect)
			require.Equal(t, 3-want, o.count("cached_results_total", "t"))
			require.Equal(t, min(want-1, 1), o.response().Attempts)
		})
	}
}

// turnstile lets one call after the other pass.
type turnstile chan struct{}

func (s turnstile) Wait(ctx context.Context, _, _ string, _ target.Limits) (func(), error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestCallsThatWaitForALimitBeyondTheBudgetKeepTheirSlots: the rest of the turns is another worker's.
func TestCallsThatWaitForALimitBeyondTheBudgetKeepTheirSlots(t *testing.T) {
	t.Parallel()
	tool := toolFunc(func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, nil })
	inRuledBubble(t, "effect: idempotent, limits: {concurrency: 1}", tool, engine.Options{}, func(t *testing.T, o *bubble) {
		t.Helper()
		limiter := turnstile(make(chan struct{}, 1))
		config := o.Config
		config.MaxAckPending = 64
		config.Engine = engine.New(engine.Options{Limiter: limiter, Timeout: time.Hour})
		o.Handlers = handlers.New(config)
		limiter <- struct{}{}
		var done []<-chan inbound.Disposition
		for _, turn := range []string{"1", "2", "3"} {
			done = append(done, o.handle(o.turn(func(e *events.StructuredOutputReady) { e.Turn = turn })))
		}
		pass(time.Second)
		require.Equal(t, int32(1), o.slots.away.Load())
		<-limiter
		for _, d := range done {
			require.Equal(t, inbound.Ack, settled(t, d).Do)
		}
		require.Zero(t, o.slots.away.Load())
	})
}

func TestCallThatWaitsForALimitTakesNoSlot(t *testing.T) {
	t.Parallel()
	tool := toolFunc(func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		select {
		case <-time.After(time.Minute):
			return tools.Result{}, nil
		case <-ctx.Done():
			return tools.Result{}, ctx.Err()
		}
	})
	inRuledBubble(t, "effect: idempotent, limits: {concurrency: 1}", tool, engine.Options{}, func(t *testing.T, o *bubble) {
		t.Helper()
		limiter := turnstile(make(chan struct{}, 1))
		o.Engine = engine.New(engine.Options{Limiter: limiter, Timeout: time.Hour})
		first := o.handle(o.turn())
		second := o.handle(o.turn(func(e *events.StructuredOutputReady) { e.Turn = "second" }))
		require.Zero(t, o.slots.away.Load(), "most wait for a moment only")
		pass(time.Second)
		require.Equal(t, int32(1), o.slots.away.Load())
		require.Equal(t, 1, o.count("tools_in_flight"))
		pass(time.Minute)
		require.Equal(t, inbound.Ack, settled(t, first).Do)
		require.Zero(t, o.slots.away.Load())
		require.Equal(t, 1, o.count("tools_in_flight"))
		pass(time.Minute)
		require.Equal(t, inbound.Ack, settled(t, second).Do)
		require.Zero(t, o.count("tools_in_flight"))

		ctx, drain := context.WithCancelCause(t.Context())
		limiter <- struct{}{} // it is never released
		message := o.turn(func(e *events.StructuredOutputReady) { e.Turn = "third" })
		time.AfterFunc(time.Second, func() { drain(handlers.ErrDraining) })
		require.Equal(t, inbound.Nak, o.Handle(ctx, message).Do, "another worker may have room")
		require.Zero(t, o.slots.away.Load())
		require.Zero(t, o.count("tools_in_flight"))
	})
}
