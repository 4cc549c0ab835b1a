package memhost_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/tool"
)

func TestHostTakesANameOnceInARun(t *testing.T) {
	t.Parallel()
	var host memhost.Host
	host.Answer("n", 1)
	ask := func(ctx context.Context, n int) (ids []string, err error) {
		for range n {
			a, errAsk := tools.CallFrom(ctx).Host.Ask(ctx, tools.Question{Name: "n"})
			id, errShow := tools.CallFrom(ctx).Host.Show(ctx, tools.Surface{Name: "n"})
			ids, err = append(ids, a.ID, id), errors.Join(err, errAsk, errShow)
		}
		return ids, err
	}
	got, err := memhost.CallTool(t.Context(), &host, ask, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"turn/n", "turn/s:n"}, got)
	_, err = memhost.CallTool(t.Context(), &host, ask, 2)
	require.ErrorIs(t, err, events.ErrToolError)
	require.ErrorContains(t, err, "duplicate name n:")
	require.ErrorContains(t, err, "duplicate name s:n:")

	_, err = memhost.CallTool(t.Context(), &host, func(ctx context.Context, id string) (any, error) {
		return nil, tools.CallFrom(ctx).Host.Dismiss(ctx, id)
	}, "turn/s:n")
	require.ErrorContains(t, err, `unknown id "turn/s:n"`)
}

func TestHostDoesNothingForAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var host memhost.Host
	_, err := memhost.CallTool(ctx, &host, func(ctx context.Context, _ any) (bool, error) { return tool.Ask[bool](ctx, tool.Question{}) }, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, host.Asked())
	_, err = host.Show(ctx, tools.Surface{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = host.StoreStep(ctx, "s", nil)
	require.ErrorIs(t, err, context.Canceled)
}
