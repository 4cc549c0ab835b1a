package run_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
)

// replier returns a text to prompts.
type replier struct{}

// Invoke implements [tools.Invoker].
func (replier) Invoke(_ context.Context, call *tools.Call) (tools.Result, error) {
	if call.Prompt == nil {
		return tools.Result{}, events.ErrBadArgs
	}
	return tools.Result{Value: json.RawMessage(`"a plan"`)}, nil
}

func TestPromptIsNotCheckedByTheSchemasOfTheAgent(t *testing.T) {
	t.Parallel()
	input, unchecked := model.CompileExternal("agent", json.RawMessage(`{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}`))
	require.Empty(t, unchecked)
	output, err := model.CompileValue("agent", json.RawMessage(`{"type":"object"}`))
	require.NoError(t, err)
	b := &bindings.Binding{Workflow: "Shop", Tool: "agent:planner", Input: input, Output: output, Timeout: time.Minute, MaxAttempts: 2}
	b.Cache.TTL = time.Hour
	tool := run.PromptTool(b, replier{})
	require.Zero(t, tool.Cache)
	require.Equal(t, 2, tool.MaxAttempts)
	call := &tools.Call{Name: b.Tool, Args: map[string]any{"request": "x"}, Prompt: &tools.Prompt{System: "Plan."}}
	outcome := engine.New(engine.Options{}).Do(t.Context(), engine.Invocation{Call: call, Tool: tool})
	require.True(t, outcome.Success, outcome.Message)
	require.JSONEq(t, `"a plan"`, string(outcome.Payload))
}
