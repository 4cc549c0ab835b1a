package harness_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

func numbered(n int) (*oneturn.Turn, oneturntest.Accepted) {
	turn := strconv.Itoa(n)
	return &oneturn.Turn{TurnID: oneturn.TurnID{Turn: turn}}, oneturntest.Accepted{Turn: turn}
}

// TestLoadRepeatsEachPublishUntilItIsAcknowledged has every publish fail for three seconds: the
// load continues at its rate, all turns are accepted once, and the gap is seen.
func TestLoadRepeatsEachPublishUntilItIsAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		down := func() bool { s := time.Since(start); return s > time.Second && s < 4*time.Second }
		l := harness.StartLoad(t.Context(), harness.LoadOptions{
			Rate: 100, Turn: numbered,
			Publish: func(context.Context, *oneturn.Turn) error {
				if down() {
					return errors.New("down")
				}
				return nil
			},
		})
		time.Sleep(10*time.Second + time.Millisecond) //nolint:forbidigo // the clock of the bubble
		require.Zero(t, l.Stop(t.Context()))
		accepted := l.Accepted()
		require.InDelta(t, 1000, len(accepted), 5)
		once := map[string]bool{}
		for _, a := range accepted {
			require.False(t, once[a.Turn], "accepted twice")
			once[a.Turn] = true
			require.False(t, a.At.Before(a.Begun))
		}
		require.InDelta(t, 3, l.Gap().Seconds(), 0.2)
		require.Positive(t, l.Repeats())
	})
}

func TestLoadHoldsItselfBackWhenNothingIsAcknowledged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		tried := map[string]bool{}
		l := harness.StartLoad(ctx, harness.LoadOptions{
			Rate: 100, Turn: numbered, Open: 7, Wait: time.Second,
			Publish: func(ctx context.Context, turn *oneturn.Turn) error {
				mu.Lock()
				tried[turn.Turn] = true
				mu.Unlock()
				<-ctx.Done() // as a server that does not answer
				return ctx.Err()
			},
		})
		time.Sleep(5 * time.Second) //nolint:forbidigo // the clock of the bubble
		soon, stop := context.WithTimeout(ctx, 3*time.Second)
		defer stop()
		require.Equal(t, 7, l.Stop(soon))
		mu.Lock()
		require.Len(t, tried, 7)
		mu.Unlock()
		cancel()
		synctest.Wait()
		require.Empty(t, l.Accepted())
	})
}
