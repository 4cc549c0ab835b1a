package docs_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func TestOrderReservesOnceAndAsksTwice(t *testing.T) {
	t.Parallel()
	host := &oneturntest.Host{}
	run := func() (json.RawMessage, error) {
		order := oneturntest.PythonTool{Root: folderOf(t, "python-tools.md"), Workflow: "Office", File: "order.py", Function: "order"}
		return oneturntest.CallPython(t.Context(), host, order, map[string]any{"item": "tea", "count": 2})
	}
	_, err := run()
	require.ErrorIs(t, err, tool.ErrParked)
	host.Answer("confirm", map[string]any{"yes": true})
	_, err = run()
	require.ErrorIs(t, err, tool.ErrParked)
	host.Answer("1", "Leave it at the door.")
	result, err := run()
	require.NoError(t, err)
	require.JSONEq(t, `{"held":"2 of tea","yes":true,"note":"Leave it at the door."}`, string(result))
	require.True(t, host.Shown()[0].Dismissed)
}

// callOfPage runs a function of the page.
func callOfPage(t *testing.T, host tools.Host, file, function string, args map[string]any) (string, error) {
	t.Helper()
	pool := python.NewPool(python.Options{Root: folderOf(t, "python-tools.md"), Size: 1})
	defer func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) }()
	result, err := pool.Tool("Office", file, function).Invoke(t.Context(), &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Name: function, Workflow: "Office", Args: args, Host: host,
	})
	return string(result.Value), err
}

func TestToolOfMozaiksAIThatThePageShowsAsks(t *testing.T) {
	t.Parallel()
	args := map[string]any{"title": "Deploy?", "chat_id": "chat", "workflow_name": "Office"}
	host := &memhost.Host{}
	host.Answer("Approval", map[string]any{"approved": true})
	got, err := callOfPage(t, host, "approve.py", "approve", args)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"success","question":"turn/1"}`, got)

	host = &memhost.Host{}
	host.Expire("Approval")
	got, err = callOfPage(t, host, "approve.py", "approve", args)
	require.NoError(t, err)
	require.Contains(t, got, "Not decided within an hour.")

	got, err = callOfPage(t, nil, "approve.py", "approve", args)
	require.NoError(t, err)
	require.Contains(t, got, "no host")
}

func TestSeveralQuestionsOfThePageAreAnsweredInAnyOrder(t *testing.T) {
	t.Parallel()
	host := &memhost.Host{}
	host.Answer("Ann", "yes")
	host.Answer("Bob", "no")
	got, err := callOfPage(t, host, "several.py", "several", map[string]any{"names": []any{"Bob", "Ann"}})
	require.NoError(t, err)
	require.JSONEq(t, `["no","yes"]`, got)
}

// TestFunctionsThatThePageListsHaveTheirParameters inspects each, and finds each name of the module on the page.
func TestFunctionsThatThePageListsHaveTheirParameters(t *testing.T) {
	t.Parallel()
	root, script := t.TempDir(), &strings.Builder{}
	script.WriteString("import inspect, oneturn\nfrom core.workflow.ui_tools import *\nfrom core.workflow import ui_tools\ndef run():\n    wrong = []\n")
	listed := regexp.MustCompile("(?m)^- `([a-z_]+)\\(([^)]*)\\)`").FindAllStringSubmatch(text(t, "python-tools.md"), -1)
	require.Len(t, listed, 10)
	named := regexp.MustCompile("`([A-Za-z]\\w*)").FindAllStringSubmatch(text(t, "python-tools.md"), -1)
	for _, m := range listed {
		script.WriteString("    f = getattr(oneturn, '" + m[1] + "', None) or ui_tools." + m[1] + "\n    p = inspect.signature(f).parameters\n")
		for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(regexp.MustCompile(`=[^,)]*`).ReplaceAllString(m[2], ""), -1) {
			script.WriteString("    if '" + name + "' not in p: wrong.append('" + m[1] + " " + name + "')\n")
		}
	}
	script.WriteString("    named = set()\n")
	for _, m := range named {
		script.WriteString("    named.add('" + m[1] + "')\n")
	}
	script.WriteString("    wrong += ['the page has no ' + name for name in vars(oneturn) if not name.startswith('_') and name not in named]\n    return wrong\n")
	write(t, root, "W/tools/t.py", script.String())
	pool := python.NewPool(python.Options{Root: root, Size: 1})
	defer func() { require.NoError(t, pool.Close(context.WithoutCancel(t.Context()))) }()
	result, err := pool.Tool("W", "t.py", "run").Invoke(t.Context(), &tools.Call{Name: "run", Args: map[string]any{}})
	require.NoError(t, err, script.String())
	require.Equal(t, "[]", string(result.Value))
}
