//go:build unix

package oneturntest_test

import (
	"context"
	"errors"
	"fmt"
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
		return "nobody decided", nil
	case err != nil:
		return "", err
	case !agreed:
		return "kept back", nil
	}
	return "published " + title, nil
}

// A tool that asks is called until its first question, answered, and called again.
func ExampleDesk() {
	var desk oneturntest.Desk
	_, err := oneturntest.CallTool(context.Background(), &desk, publish, "News")
	fmt.Println(errors.Is(err, tool.ErrParked), string(desk.Asked()[0].Question.Payload))

	desk.Answer("Approval", true)
	result, err := oneturntest.CallTool(context.Background(), &desk, publish, "News")
	fmt.Println(result, err)
	// Output:
	// true {"title":"News"}
	// published News <nil>
}

func TestDeskHandsAnswersOutByIDBeforeTool(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	desk.Answer("Pick", "first of the tool")
	desk.Answer("Pick", "second of the tool")
	desk.Answer("2", "by number")
	got, err := oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, n int) ([]string, error) {
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
	require.False(t, desk.Asked()[2].Open)
}

func TestDeskLetsAQuestionExpire(t *testing.T) {
	t.Parallel()
	desk := oneturntest.Desk{Reenterable: true}
	desk.Expire("1")
	for range 2 { // also for a run that comes later
		got, err := oneturntest.CallTool(t.Context(), &desk, publish, "News")
		require.NoError(t, err)
		require.Equal(t, "nobody decided", got)
	}
	require.Equal(t, 2, desk.Runs())
}

func TestDeskFailsTheTestWhoseAnswerDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"does not fit the schema: the whole value: expected": "yes", "unsupported type": func() {}} {
		var desk oneturntest.Desk
		desk.Answer("1", value)
		_, err := oneturntest.CallTool(t.Context(), &desk, publish, "News")
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "scripted answer to question 1")
		require.True(t, desk.Asked()[0].Open)
	}
}

func TestDeskFindsThatTheOrderOfQuestionsChanged(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	ask := func(ctx context.Context, id string) (any, error) {
		return tool.Ask[any](ctx, tool.Question{Tool: id, Payload: map[string]int{id: desk.Runs()}})
	}
	for range 2 { // another payload is the same question
		_, err := oneturntest.CallTool(t.Context(), &desk, ask, "A")
		require.ErrorIs(t, err, tools.ErrParked)
	}
	_, err := oneturntest.CallTool(t.Context(), &desk, ask, "B")
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "order of questions changed")
}

// It is the rule of a worker: see TestTakeoverOfATurnThatAskedRunsOnlyWhileItWaits.
func TestDeskInterruptsAToolThatIsCalledAgainBehindItsLastAnswer(t *testing.T) {
	t.Parallel()
	two := func(ctx context.Context, _ any) (string, error) {
		if _, err := tool.Ask[bool](ctx, tool.Question{Name: "a/1"}); err != nil {
			return "", err
		}
		return tool.Ask[string](ctx, tool.Question{})
	}
	var desk oneturntest.Desk
	desk.Answer("a/1", true)
	for range 2 { // what is between the answers runs again: it is code before an open question
		_, err := oneturntest.CallTool(t.Context(), &desk, two, nil)
		require.ErrorIs(t, err, tools.ErrParked)
	}
	desk.Answer("1", "yes")
	got, err := oneturntest.CallTool(t.Context(), &desk, two, nil)
	require.NoError(t, err)
	require.Equal(t, "yes", got)
	_, err = oneturntest.CallTool(t.Context(), &desk, two, nil)
	require.ErrorIs(t, err, events.ErrInterrupted)
	require.ErrorContains(t, err, "ask a%2F1")
}

func TestDeskTakesANameOnceInARun(t *testing.T) {
	t.Parallel()
	var desk oneturntest.Desk
	desk.Answer("n", 1)
	ask := func(ctx context.Context, n int) (ids []string, err error) {
		for range n {
			a, errAsk := tools.CallFrom(ctx).Host.Ask(ctx, tools.Question{Name: "n"})
			id, errShow := tools.CallFrom(ctx).Host.Show(ctx, tools.Surface{Name: "n"})
			ids, err = append(ids, a.ID, id), errors.Join(err, errAsk, errShow)
		}
		return ids, err
	}
	got, err := oneturntest.CallTool(t.Context(), &desk, ask, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"turn/n", "turn/s:n"}, got)
	_, err = oneturntest.CallTool(t.Context(), &desk, ask, 2)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "this run has put up n before")
	require.ErrorContains(t, err, "this run has put up s:n before")

	_, err = oneturntest.CallTool(t.Context(), &desk, func(ctx context.Context, id string) (any, error) {
		return nil, tools.CallFrom(ctx).Host.Dismiss(ctx, id)
	}, "turn/s:n")
	require.ErrorContains(t, err, `has put up nothing with id "turn/s:n"`)
}

func TestDeskDoesNothingForAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var desk oneturntest.Desk
	_, err := oneturntest.CallTool(ctx, &desk, publish, "News")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, desk.Asked())
	_, err = desk.Show(ctx, tools.Surface{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = desk.StoreStep(ctx, "s", nil)
	require.ErrorIs(t, err, context.Canceled)
}
