package query

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/pause"
)

func TestReadsUnderTheLockOfTheJournalLeaveItToWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, begun := newReads(), time.Now()
		took := func(d time.Duration) func() error {
			return func() error { return pause.For(t.Context(), d) }
		}
		at := func() time.Duration { return time.Since(begun) }
		for range 3 { // nothing is loaded
			require.NoError(t, r.spaced(t.Context(), took(quickRead)))
		}
		require.Equal(t, 3*quickRead, at())
		require.NoError(t, r.spaced(t.Context(), took(50*time.Millisecond)))
		require.Equal(t, 80*time.Millisecond, at(), "the reader itself does not wait")
		require.NoError(t, r.spaced(t.Context(), took(time.Second)))
		require.Equal(t, 1180*time.Millisecond, at(), "the next one does, twice as long")
		require.NoError(t, r.spaced(t.Context(), took(0)))
		require.Equal(t, 1180*time.Millisecond+maxSpace, at(), "but no longer than this")

		require.NoError(t, r.spaced(t.Context(), took(time.Second)))
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		require.ErrorIs(t, r.spaced(ctx, took(0)), gone)
		require.NoError(t, r.spaced(t.Context(), took(0)), "it has left its place")
	})
}
