package cli

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSignalsOfOneMomentAreOneSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := make(chan os.Signal, 2)
		begun := time.Now()
		var first, second time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			untilSecond(got, func() { first = time.Since(begun) })
			second = time.Since(begun)
		}()
		for _, wait := range []time.Duration{time.Second, 0, 200 * time.Millisecond, 100 * time.Millisecond} {
			<-time.After(wait)
			got <- os.Interrupt
		}
		<-done
		require.Equal(t, time.Second, first)
		require.Equal(t, 1300*time.Millisecond, second)
	})
}
