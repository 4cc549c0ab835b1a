package docs_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func TestOrderReservesOnceAndAsksTwice(t *testing.T) {
	t.Parallel()
	pool := python.NewPool(python.Options{Root: folderOf(t, "python-tools.md"), Size: 1}) // your folder of workflows
	defer pool.Close(context.Background())
	desk := &oneturntest.Desk{}
	run := func() (tools.Result, error) {
		desk.NewRun() // questions without a name are numbered from 1 again
		return pool.Tool("Desk", "order.py", "order").Invoke(t.Context(), &tools.Call{
			Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Name: "order", Workflow: "Desk",
			Args: map[string]any{"item": "tea", "count": json.Number("2")}, Host: desk,
		})
	}
	_, err := run()
	require.ErrorIs(t, err, tool.ErrParked)
	desk.Answer("confirm", map[string]any{"yes": true})
	_, err = run()
	require.ErrorIs(t, err, tool.ErrParked)
	desk.Answer("1", "Leave it at the door.")
	result, err := run()
	require.NoError(t, err)
	require.JSONEq(t, `{"held":"2 of tea","yes":true,"note":"Leave it at the door."}`, string(result.Value))
	require.True(t, desk.Shown()[0].Dismissed)
}

// deskCall runs a function of the page at a desk.
func deskCall(t *testing.T, desk tools.Host, file, function string, args map[string]any) (string, error) {
	t.Helper()
	pool := python.NewPool(python.Options{Root: folderOf(t, "python-tools.md"), Size: 1})
	defer func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) }()
	result, err := pool.Tool("Desk", file, function).Invoke(t.Context(), &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Name: function, Workflow: "Desk", Args: args, Host: desk,
	})
	return string(result.Value), err
}

func TestToolOfMozaiksAIThatThePageShowsAsks(t *testing.T) {
	t.Parallel()
	args := map[string]any{"title": "Deploy?", "chat_id": "chat", "workflow_name": "Desk"}
	desk := &oneturntest.Desk{}
	desk.Answer("Approval", map[string]any{"approved": true})
	got, err := deskCall(t, desk, "approve.py", "approve", args)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"success","question":"turn/1"}`, got)

	desk = &oneturntest.Desk{}
	desk.Expire("Approval")
	got, err = deskCall(t, desk, "approve.py", "approve", args)
	require.NoError(t, err)
	require.Contains(t, got, "Not decided within an hour.")

	got, err = deskCall(t, nil, "approve.py", "approve", args)
	require.NoError(t, err)
	require.Contains(t, got, "has no desk")
}

func TestSeveralQuestionsOfThePageAreAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	desk := &oneturntest.Desk{}
	desk.Answer("Ann", "yes")
	desk.Answer("Bob", "no")
	got, err := deskCall(t, desk, "several.py", "several", map[string]any{"names": []any{"Bob", "Ann"}})
	require.NoError(t, err)
	require.JSONEq(t, `["no","yes"]`, got)
}

// TestFunctionsThatThePageListsHaveTheirParameters calls each by inspection.
func TestFunctionsThatThePageListsHaveTheirParameters(t *testing.T) {
	t.Parallel()
	root, script := t.TempDir(), &strings.Builder{}
	script.WriteString("import inspect, oneturn\nfrom core.workflow.ui_tools import *\nfrom core.workflow import ui_tools\ndef run():\n    wrong = []\n")
	listed := regexp.MustCompile("(?m)^- `([a-z_]+)\\(([^)]*)\\)`").FindAllStringSubmatch(text(t, "python-tools.md"), -1)
	require.Len(t, listed, 9)
	for _, m := range listed {
		script.WriteString("    f = getattr(oneturn, '" + m[1] + "', None) or ui_tools." + m[1] + "\n    p = inspect.signature(f).parameters\n")
		for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(regexp.MustCompile(`=[^,)]*`).ReplaceAllString(m[2], ""), -1) {
			script.WriteString("    if '" + name + "' not in p: wrong.append('" + m[1] + " " + name + "')\n")
		}
	}
	script.WriteString("    return wrong\n")
	write(t, root, "W/tools/t.py", script.String())
	pool := python.NewPool(python.Options{Root: root, Size: 1})
	defer func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) }()
	result, err := pool.Tool("W", "t.py", "run").Invoke(t.Context(), &tools.Call{Name: "run", Args: map[string]any{}})
	require.NoError(t, err, script.String())
	require.Equal(t, "[]", string(result.Value))
}
