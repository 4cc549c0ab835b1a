package oneturn

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTenantWhoseSearchesAreDearWaitsForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const passed = 100_000
		s := newSearches()
		dear := func() (uint64, error) { return 7 + passed, nil }
		begun, searched := time.Now(), 0
		for time.Since(begun) < time.Minute {
			err := s.do("acme", 7, dear)
			busy, refused := errors.AsType[*busyError](err)
			if !refused {
				require.NoError(t, err)
				searched += passed
				continue
			}
			require.ErrorIs(t, err, errBusy)
			require.GreaterOrEqual(t, retryAfter(err), 1)
			require.NoError(t, s.do("beta", 7, dear), "another tenant has a budget of its own")
			<-time.After(time.Duration(busy.seconds()) * time.Second)
		}
		require.Less(t, searched, 60*searchRate+2*searchBurst)
		require.Greater(t, searched, 60*searchRate/2, "the hint lets it go on")
	})
}

func TestShortSearchesCostNothingAndTenantsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSearches()
		for n := range 10_000 {
			require.NoError(t, s.do("app", 1, func() (uint64, error) { return searchFree, nil }))
			require.NoError(t, s.do(strconv.Itoa(n), 1, func() (uint64, error) { return 10 * searchFree, nil }))
			<-time.After(time.Second)
		}
		require.LessOrEqual(t, len(s.tenants), maxSearching)
	})
}
