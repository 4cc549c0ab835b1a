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
		f, err := p.take(t.Context(), nil, "greedy", "")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err := p.take(ended, nil, "greedy", "")
	require.ErrorIs(t, err, context.Canceled)
	for range 2 {
		f, err := p.take(t.Context(), nil, "other", "")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err = p.take(ended, nil, "third", "")
	require.ErrorIs(t, err, context.Canceled)
	free[0]()
	f, err := p.take(t.Context(), nil, "third", "")
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
		f, err := p.take(t.Context(), nil, "tenant", "greedy")
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err := p.take(ended, nil, "tenant", "greedy")
	require.ErrorIs(t, err, context.Canceled)
	for _, user := range []string{"other", ""} {
		f, err := p.take(t.Context(), nil, "tenant", user)
		require.NoError(t, err)
		free = append(free, f)
	}
	_, err = p.take(ended, nil, "tenant", "third")
	require.ErrorIs(t, err, context.Canceled, "the tenant has its half")
	for _, f := range free {
		f()
	}
	require.Empty(t, p.shares)
	require.Empty(t, p.all)
}
