package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestAllTracersGetThePhasesOfACall(t *testing.T) {
	t.Parallel()
	require.Nil(t, engine.Tracers(nil, nil))
	var first, second bytes.Buffer
	logTo := func(b *bytes.Buffer) engine.Tracer {
		return engine.LogTracer(slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	}
	e := engine.New(engine.Options{Tracer: engine.Tracers(logTo(&first), nil, logTo(&second))})
	e.Do(t.Context(), engine.Invocation{
		Call: &tools.Call{Name: "greet", CallID: "t1"},
		Tool: engine.Tool{Invoker: tools.Func(func(context.Context, map[string]any) (string, error) { return "hi", nil })},
	})
	for _, log := range []string{first.String(), second.String()} {
		require.Contains(t, log, "phase=tool.invoke.ok")
		require.Contains(t, log, "turn=t1")
	}
}
