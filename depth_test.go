package oneturn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tool"
)

const againManifest = `
agents: {Assistant: {}}
tools:
- {name: run_plan, kind: plan, agent: Assistant}
- {name: headers, file: tools.py, auto: false, effect: none, output: {type: object}}
- {name: again, kind: go, auto: false, effect: idempotent}
`

// againTools publishes a turn as a tool in another process does: with the headers that the module has for it.
const againTools = `
import oneturn
def headers():
    return dict(oneturn.call().headers(), depth=oneturn.call().depth)
`

// TestProgramThatPublishesItselfEndsAtTheLimitOfDepth has a tool whose turn calls the tool again, and so on.
func TestProgramThatPublishesItselfEndsAtTheLimitOfDepth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "Again"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Again", "oneturn.yaml"), []byte(againManifest), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Again", "tools.py"), []byte(againTools), 0o600))
	s := server(t)
	c := client(t, s)
	next := func(n int) *oneturn.Turn {
		return &oneturn.Turn{
			TurnID: oneturn.TurnID{Chat: "again", Turn: fmt.Sprint("t", n)}, Workflow: "Again", Agent: "Assistant",
			Data: map[string]any{"type": "tool_calls", "calls": []any{
				map[string]any{"tool_name": "headers", "arguments": map[string]any{}}, map[string]any{"tool_name": "again", "arguments": map[string]any{"n": n}},
			}},
		}
	}
	type number struct {
		N int `json:"n"`
	}
	again := func(ctx context.Context, in number) (int, error) {
		_, err := c.Publish(ctx, next(in.N+1))
		return tool.Info(ctx).Depth, err
	}
	start(t, s, oneturn.Config{Workflows: dir, Tools: []oneturn.Tool{oneturn.NewTool("again", again, oneturn.ToolOptions{})}})
	_, err := c.Publish(t.Context(), next(0))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for n := range 3 {
		r, err := c.Await(ctx, next(n).TurnID)
		require.NoError(t, err)
		require.True(t, r.Success, "%s: %v", r.Content, r.Payload)
		depth, payload := strconv.Itoa(n+1), fmt.Sprint(r.Payload)
		require.Contains(t, payload, "output:map[Oneturn-Depth:"+depth+" depth:"+depth+"]", "Python")
		require.Contains(t, payload, "output:"+depth+" ", "Go")
	}
	r, err := c.Await(ctx, next(3).TurnID)
	require.NoError(t, err)
	require.Equal(t, events.CodeGuardrail, r.Code, r.Content)
	require.Contains(t, r.Content, "nested 4 deep; the limit is 3")

	other := next(4)
	other.Depth = 1
	other.Turn = "of another process"
	_, err = c.Publish(t.Context(), other)
	require.NoError(t, err)
	r, err = c.Await(ctx, other.TurnID)
	require.NoError(t, err)
	require.True(t, r.Success, r.Content)
	require.Contains(t, fmt.Sprint(r.Payload), "depth:2")
}
