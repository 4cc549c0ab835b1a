package feed

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneTenantLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	p := newPlaces(4)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var free []func()
	for range 2 {
		f, err := p.take(t.Context(), "greedy", "")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err := p.take(ended, "greedy", "")
	require.ErrorIs(t, err, context.Canceled)
	for range 2 {
		f, err := p.take(t.Context(), "other", "")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err = p.take(ended, "third", "")
	require.ErrorIs(t, err, context.Canceled)
	free[0]()
	f, err := p.take(t.Context(), "third", "")
	require.NoError(t, err)
	for _, f := range append(free[1:], f) {
		f()
	}
	require.Empty(t, p.shares)
	require.Empty(t, p.all)
}

func TestOneUserLeavesPlacesOfTheTenantToOthers(t *testing.T) {
	t.Parallel()
	p := newPlaces(8)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var free []func()
	for range 2 {
		f, err := p.take(t.Context(), "tenant", "greedy")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err := p.take(ended, "tenant", "greedy")
	require.ErrorIs(t, err, context.Canceled)
	for _, user := range []string{"other", ""} {
		f, err := p.take(t.Context(), "tenant", user)
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err = p.take(ended, "tenant", "third")
	require.ErrorIs(t, err, context.Canceled, "the tenant has its half")
	for _, f := range free {
		f()
	}
	require.Empty(t, p.shares)
	require.Empty(t, p.all)
}
