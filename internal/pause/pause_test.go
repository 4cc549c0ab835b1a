package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/pause"
)

func TestPauseEndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, pause.For(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		require.ErrorIs(t, pause.For(ctx, time.Minute), stopped)
		require.Equal(t, time.Minute+time.Second, time.Since(began))
	})
}
