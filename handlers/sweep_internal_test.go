package handlers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPacerKeepsTheRateAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newPacer(5_000)
		for range 10_000 {
			require.NoError(t, p.wait(t.Context()))
		}
		require.Equal(t, 2*time.Second, time.Since(start))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ErrDraining)
		p = newPacer(1)
		require.ErrorIs(t, p.wait(ctx), ErrDraining)
		p = newPacer(0)
		start = time.Now()
		for range 10_000 {
			require.NoError(t, p.wait(t.Context()))
		}
		require.Zero(t, time.Since(start))
	})
}

// FuzzDecodePage: whatever is read names turns, and no filter that matches others.
func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(`[{"key":"a.c.0-t.0","seq":1}]`))
	f.Add([]byte(`[{"key":"a.*.0-t.0","seq":18446744073709551615,"held":1,"stream":"S"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := decodePage(data)
		if err != nil {
			return
		}
		for _, o := range page {
			require.NotContains(t, o.Key, "*")
			require.NotContains(t, o.Key, ">")
		}
	})
}
