//go:build unix

package oneturntest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func publish(ctx context.Context, title string) (string, error) {
	agreed, err := tool.Ask[bool](ctx, tool.Question{Tool: "Approval", Payload: map[string]any{"title": title}})
	switch {
	case errors.Is(err, tool.ErrExpired):
		return "not decided", nil
	case err != nil:
		return "", err
	case !agreed:
		return "rejected", nil
	}
	return "published " + title, nil
}

// A tool that asks is called until its first question, answered, and called again.
func ExampleHost() {
	var host oneturntest.Host
	_, err := oneturntest.CallTool(context.Background(), &host, publish, "News")
	fmt.Println(errors.Is(err, tool.ErrParked), string(host.Asked()[0].Payload))

	host.Answer("Approval", true)
	result, err := oneturntest.CallTool(context.Background(), &host, publish, "News")
	fmt.Println(result, err)
	// Output:
	// true {"title":"News"}
	// published News <nil>
}

func TestHostPrefersAnswersByIDToAnswersByTool(t *testing.T) {
	t.Parallel()
	var host oneturntest.Host
	host.Answer("Pick", "first of the tool")
	host.Answer("Pick", "second of the tool")
	host.Answer("2", "by number")
	got, err := oneturntest.CallTool(t.Context(), &host, func(ctx context.Context, n int) ([]string, error) {
		var got []string
		for range n {
			s, err := tool.Ask[string](ctx, tool.Question{Tool: "Pick"})
			if err != nil {
				return nil, err
			}
			got = append(got, s)
		}
		return got, nil
	}, 3)
	require.NoError(t, err)
	require.Equal(t, []string{"first of the tool", "by number", "second of the tool"}, got)
	require.False(t, host.Asked()[2].Open)
}

func TestHostLetsAQuestionExpire(t *testing.T) {
	t.Parallel()
	host := oneturntest.Host{Reenterable: true}
	host.Expire("1")
	for range 2 { // also for a run that comes later
		got, err := oneturntest.CallTool(t.Context(), &host, publish, "News")
		require.NoError(t, err)
		require.Equal(t, "not decided", got)
	}
	require.Equal(t, 2, host.Runs())
}

func TestScriptedAnswerThatDoesNotMatchFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"does not match the schema: the whole value: expected": "yes", "unsupported type": func() {}} {
		var host oneturntest.Host
		host.Answer("1", value)
		_, err := oneturntest.CallTool(t.Context(), &host, publish, "News")
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "scripted answer to question 1")
		require.True(t, host.Asked()[0].Open)
	}
}

func TestHostFindsThatTheOrderOfQuestionsChanged(t *testing.T) {
	t.Parallel()
	var host oneturntest.Host
	ask := func(ctx context.Context, id string) (any, error) {
		return tool.Ask[any](ctx, tool.Question{Tool: id, Payload: map[string]int{id: host.Runs()}})
	}
	for range 2 { // another payload is the same question
		_, err := oneturntest.CallTool(t.Context(), &host, ask, "A")
		require.ErrorIs(t, err, tools.ErrParked)
	}
	_, err := oneturntest.CallTool(t.Context(), &host, ask, "B")
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "order of questions changed")
}

// It is the rule of a worker: see TestTakeoverOfATurnThatAskedRunsOnlyWhileItWaits.
func TestHostInterruptsAToolThatIsCalledAgainAfterItsLastAnswer(t *testing.T) {
	t.Parallel()
	two := func(ctx context.Context, _ any) (string, error) {
		if _, err := tool.Ask[bool](ctx, tool.Question{Name: "a/1"}); err != nil {
			return "", err
		}
		return tool.Ask[string](ctx, tool.Question{})
	}
	var host oneturntest.Host
	host.Answer("a/1", true)
	for range 2 { // what is between the answers runs again: it is code before an open question
		_, err := oneturntest.CallTool(t.Context(), &host, two, nil)
		require.ErrorIs(t, err, tools.ErrParked)
	}
	host.Answer("1", "yes")
	got, err := oneturntest.CallTool(t.Context(), &host, two, nil)
	require.NoError(t, err)
	require.Equal(t, "yes", got)
	_, err = oneturntest.CallTool(t.Context(), &host, two, nil)
	require.ErrorIs(t, err, events.ErrInterrupted)
	require.ErrorContains(t, err, "ask a%2F1")
}

func TestVariablesOfTheHostAreTheChats(t *testing.T) {
	t.Parallel()
	host := oneturntest.Host{Turn: "t1", Variables: map[string]any{"tries": 1, "old": true}}
	count := func(ctx context.Context, fail bool) (string, error) {
		vars := tool.Vars(ctx)
		tries, _ := vars.Get("tries")
		n, ok := tries.(json.Number)
		require.True(t, ok)
		vars.Remove("old")
		if err := vars.Set("tries", n+"0"); err != nil || fail {
			return "", errors.Join(err, errors.New("failed"))
		}
		return tool.Info(ctx).Turn, nil
	}
	_, err := oneturntest.CallTool(t.Context(), &host, count, true)
	require.ErrorContains(t, err, "failed")
	require.Equal(t, map[string]any{"tries": json.Number("1"), "old": true}, host.Variables, "a failed run changes nothing")
	turn, err := oneturntest.CallTool(t.Context(), &host, count, false)
	require.NoError(t, err)
	require.Equal(t, "t1", turn)
	require.Equal(t, map[string]any{"tries": json.Number("10")}, host.Variables)

	host.Variables = map[string]any{"f": func() {}}
	_, err = oneturntest.CallTool(t.Context(), &host, count, false)
	require.ErrorContains(t, err, "Host.Variables")
}

func TestPythonToolIsCalledWithTheHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "W", "tools"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "W", "tools", "t.py"), []byte(
		"import oneturn\n\ndef greet(name, context_variables):\n    context_variables.set('greeted', name)\n    return oneturn.request_input('How are you?') + ', ' + name\n"), 0o600))
	host := oneturntest.Host{}
	greet := oneturntest.PythonTool{Root: root, Workflow: "W", File: "t.py", Function: "greet"}
	_, err := oneturntest.CallPython(t.Context(), &host, greet, map[string]any{"name": "Ada"})
	require.ErrorIs(t, err, tool.ErrParked)
	require.True(t, host.Asked()[0].Input)
	host.Answer("1", "Fine")
	result, err := oneturntest.CallPython(t.Context(), &host, greet, map[string]any{"name": "Ada"})
	require.NoError(t, err)
	require.JSONEq(t, `"Fine, Ada"`, string(result))
	require.Equal(t, map[string]any{"greeted": "Ada"}, host.Variables)

	_, err = oneturntest.CallPython(t.Context(), &host, greet, []string{"Ada"})
	require.ErrorContains(t, err, "not a JSON object")
}
