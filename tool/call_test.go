package tool_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

func TestInfoHasEveryFieldOfTheCall(t *testing.T) {
	t.Parallel()
	var info tool.CallInfo
	invoker := tools.Func(func(ctx context.Context, _ map[string]any) (any, error) { info = tool.Info(ctx); return "", nil })
	_, err := invoker.Invoke(t.Context(), &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Run: "run", Turn: "turn"}, CallID: "id", Workflow: "W", Agent: "A", UserID: "ada", Name: "save",
		IdempotencyKey: "key", FencingToken: 7, Epoch: 2, Attempt: 3, Trace: "00-1-2-01", Depth: 4,
	})
	require.NoError(t, err)
	require.Equal(t, tool.CallInfo{
		App: "app", Chat: "chat", Run: "run", Turn: "turn", CallID: "id", Workflow: "W", Agent: "A", UserID: "ada", Tool: "save",
		IdempotencyKey: "key", FencingToken: 7, Epoch: 2, Attempt: 3, Trace: "00-1-2-01", Depth: 4,
	}, info)
	for i := range reflect.TypeOf(info).NumField() {
		require.False(t, reflect.ValueOf(info).Field(i).IsZero(), reflect.TypeOf(info).Field(i).Name)
	}
}

func TestOutsideAToolInfoIsZeroAndVarsAreEmpty(t *testing.T) {
	t.Parallel()
	require.Equal(t, tool.CallInfo{}, tool.Info(t.Context()))
	vars := tool.Vars(t.Context())
	require.NoError(t, vars.Set("a", 1))
	require.Empty(t, tool.Vars(t.Context()).Keys())
}

func TestChangedVariablesAreReadWithinTheRun(t *testing.T) {
	t.Parallel()
	var host oneturntest.Host
	keys, err := oneturntest.CallTool(t.Context(), &host, func(ctx context.Context, _ any) ([]string, error) {
		vars := tool.Vars(ctx)
		if err := errors.Join(vars.Set("a", 1), vars.Set("b", "x"), vars.Set("c", true)); err != nil {
			return nil, err
		}
		vars.Remove("a")
		b, ok := vars.Get("b")
		require.True(t, ok)
		require.Equal(t, "x", b)
		require.Error(t, vars.Set("d", func() {}))
		return vars.Keys(), nil
	}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "c"}, keys)
}

func TestErrorsHaveTheCodesThatTheyPromise(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, tool.UserError("unknown article"), events.ErrUserError)
	var refusal *guards.Refusal
	require.ErrorAs(t, tool.Refuse("too many"), &refusal)
	require.Equal(t, "too many", refusal.Reason)
	busy := errors.New("busy")
	wait, retry := tools.RetryDelay(tool.RetryAfter(busy, time.Second))
	require.True(t, retry)
	require.Equal(t, time.Second, wait)
	require.ErrorIs(t, tool.Retryable(busy), busy)
	require.True(t, tools.IsRetryable(tool.Retryable(busy)))
	require.NoError(t, tool.Retryable(nil))
}

// A tool that rejects an invalid request, remembers what it has done, and passes on the
// idempotency key.
func Example() {
	order := func(ctx context.Context, item string) (string, error) {
		if item == "" {
			return "", tool.UserError("name an item")
		}
		number, err := tool.Step(ctx, "place the order", func(ctx context.Context) (int, error) {
			fmt.Println("place", item, "with", tool.Info(ctx).IdempotencyKey)
			return 42, nil
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("order %d", number), tool.Vars(ctx).Set("last_order", number)
	}

	var host oneturntest.Host
	fmt.Println(oneturntest.CallTool(context.Background(), &host, order, "tea"))
	// Output:
	// place tea with key of the turn
	// order 42 <nil>
}

func ExampleProgress() {
	export := func(ctx context.Context, pages int) (int, error) {
		for page := range pages {
			if err := tool.Progress(ctx, float64(100*page/pages), "exporting"); err != nil {
				return 0, err
			}
		}
		return pages, nil
	}
	var host oneturntest.Host
	fmt.Println(oneturntest.CallTool(context.Background(), &host, export, 4))
	fmt.Println(len(host.Reported()), "reports")
	// Output:
	// 4 <nil>
	// 4 reports
}
