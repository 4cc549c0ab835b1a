package docs_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/tool"
)

// TestGoOfTheQuestionsPageIsTheExample: the example's tests run it.
func TestGoOfTheQuestionsPageIsTheExample(t *testing.T) {
	t.Parallel()
	shown := fenced(t, "questions.md", "go")
	require.Len(t, shown, 2)
	for i, file := range []string{"approval.go", "approval_test.go"} {
		source, err := os.ReadFile("../examples/02-approval/" + file)
		require.NoError(t, err)
		require.Contains(t, string(source), shown[i].text)
	}
}

// TestPythonOfTheQuestionsPageAsks runs the tool as a worker would: until it waits, and again.
func TestPythonOfTheQuestionsPageAsks(t *testing.T) {
	t.Parallel()
	pool := python.NewPool(python.Options{Root: folderOf(t, "questions.md"), Size: 1})
	defer pool.Close(context.WithoutCancel(t.Context()))
	run := func(host *memhost.Host) (tools.Result, error) {
		host.NewRun()
		return pool.Tool("Press", "approve.py", "approve").Invoke(t.Context(), &tools.Call{
			Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Workflow: "Press", Name: "approve", Attempt: 1,
			Args:    map[string]any{"title": "News", "body": "…", "chat_id": "chat", "workflow_name": "Press"},
			Context: map[string]any{}, Host: host,
		})
	}
	var host memhost.Host
	for range 2 {
		_, err := run(&host)
		require.ErrorIs(t, err, tool.ErrParked)
	}
	asked := host.Asked()
	require.Len(t, asked, 1)
	require.Equal(t, 24*time.Hour, asked[0].Question.Timeout)
	host.Answer("PostApproval", map[string]any{"status": "approved"})
	result, err := run(&host)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"success","message":"News is published."}`, string(result.Value))
	require.Equal(t, map[string]any{"post_status": "approved"}, result.Set)

	var late memhost.Host
	late.Expire("1")
	result, err = run(&late)
	require.NoError(t, err)
	var value map[string]any
	require.NoError(t, json.Unmarshal(result.Value, &value))
	require.Equal(t, "error", value["status"])
}
