package jsapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateLimiterKeepsTheRateAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := NewRateLimiter(5_000)
		for range 10_000 {
			require.NoError(t, p.Wait(t.Context()))
		}
		require.Equal(t, 2*time.Second, time.Since(start))
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		cancel(stopped)
		p = NewRateLimiter(1)
		require.ErrorIs(t, p.Wait(ctx), stopped)
		p = NewRateLimiter(0)
		start = time.Now()
		for range 10_000 {
			require.NoError(t, p.Wait(t.Context()))
		}
		require.Zero(t, time.Since(start))
	})
}
