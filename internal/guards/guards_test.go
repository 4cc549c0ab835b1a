package guards_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
)

// call is a call with arguments written as JSON.
func call(tb testing.TB, args string) *tools.Call {
	tb.Helper()
	tree, err := events.Decode([]byte(args))
	require.NoError(tb, err)
	object, ok := tree.(map[string]any)
	require.True(tb, ok)
	return &tools.Call{
		Turn: events.TurnID{App: "acme", Chat: "c1", Turn: "t1"}, Workflow: "Shop", Agent: "Clerk", UserID: "u1", Name: "refund", Args: object,
	}
}

func compile(tb testing.TB, d guards.Declared) []guards.Guard {
	tb.Helper()
	g, err := guards.Compile(d)
	require.NoError(tb, err)
	return []guards.Guard{g}
}

// refusal asks a guard on input, and returns its words, "" if it lets the call through.
func refusal(tb testing.TB, d guards.Declared, args string) string {
	tb.Helper()
	d.On = guards.OnInput
	return words(tb, guards.AdmitInput(tb.Context(), compile(tb, d), call(tb, args)))
}

// outputRefusal is refusal for a result.
func outputRefusal(tb testing.TB, d guards.Declared, args, output string) string {
	tb.Helper()
	d.On = guards.OnOutput
	return words(tb, guards.AdmitOutput(tb.Context(), compile(tb, d), call(tb, args), json.RawMessage(output)))
}

func words(tb testing.TB, err error) string {
	tb.Helper()
	if err == nil {
		return ""
	}
	var r *guards.Refusal
	require.ErrorAs(tb, err, &r)
	require.NotEmpty(tb, r.Reason)
	return r.Reason
}

func TestFirstRefusalEndsTheCall(t *testing.T) {
	t.Parallel()
	var asked []string
	guard := func(name string, err error) guards.Guard {
		return guards.Input(func(context.Context, *tools.Call) error {
			asked = append(asked, name)
			return err
		})
	}
	list := []guards.Guard{guard("a", nil), guard("b", &guards.Refusal{Reason: "no"}), guard("c", nil)}
	require.Equal(t, "no", words(t, guards.AdmitInput(t.Context(), list, call(t, `{}`))))
	require.Equal(t, []string{"a", "b"}, asked)
	require.NoError(t, guards.AdmitOutput(t.Context(), list, call(t, `{}`), nil))
}

func TestGuardThatPanicsOrFailsRefuses(t *testing.T) {
	t.Parallel()
	panics := guards.Output(func(context.Context, *tools.Call, json.RawMessage) error { panic("the value 4711") })
	err := guards.AdmitOutput(t.Context(), []guards.Guard{panics}, call(t, `{}`), nil)
	require.Equal(t, "a guard broke, so the call is refused", words(t, err))
	var panicked *tools.PanicError
	require.ErrorAs(t, err, &panicked)
	require.Contains(t, string(panicked.Stack), "goroutine", "where it broke is for the log")
	require.NoError(t, guards.AdmitInput(t.Context(), []guards.Guard{panics}, call(t, `{}`)))

	fails := guards.Input(func(context.Context, *tools.Call) error { return errors.New("no rights") })
	require.Equal(t, "no rights", words(t, guards.AdmitInput(t.Context(), []guards.Guard{fails}, call(t, `{}`))))
	blank := guards.Input(func(context.Context, *tools.Call) error { return errors.New(" ") })
	require.Equal(t, "a guard refuses the call", words(t, guards.AdmitInput(t.Context(), []guards.Guard{blank}, call(t, `{}`))))
}

func TestEndOfTheCallIsNotARefusal(t *testing.T) {
	t.Parallel()
	cause := errors.New("draining")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	waits := guards.Input(func(ctx context.Context, _ *tools.Call) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	err := guards.AdmitInput(ctx, []guards.Guard{waits}, call(t, `{}`))
	require.ErrorIs(t, err, cause)
	var r *guards.Refusal
	require.NotErrorAs(t, err, &r)
}

func TestAgentsCallWhatTheirListAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list guards.Allow
		want string
	}{
		{guards.Allow{"Clerk": {"refund", "search"}}, ""},
		{guards.Allow{"Other": {"search"}}, ""},
		{guards.Allow{"Clerk": {"search", "show"}}, "the agent may not call this tool; allowed: search, show"},
		{guards.Allow{"Clerk": {}}, "the agent may not call this tool; allowed: none"},
	} {
		require.Equal(t, c.want, words(t, guards.AdmitInput(t.Context(), []guards.Guard{c.list}, call(t, `{}`))))
		require.NoError(t, guards.AdmitOutput(t.Context(), []guards.Guard{c.list}, call(t, `{}`), nil))
	}
}
