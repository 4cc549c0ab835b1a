package auth_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func newRates(c *clock, change func(*auth.RateConfig)) *auth.Rates {
	cfg := auth.DefaultRates()
	cfg.Now = c.now
	if change != nil {
		change(&cfg)
	}
	return auth.NewRates(cfg)
}

func TestAUserSends20RequestsASecondAfterABurstOf40(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, nil)
	for range 40 {
		require.NoError(t, r.Request("acme", "ada"))
	}
	for range 100 { // a request that is refused costs nothing
		var e *auth.Error
		require.ErrorAs(t, r.Request("acme", "ada"), &e)
		require.Equal(t, auth.CodeRateLimited, e.Code)
		require.Equal(t, 50*time.Millisecond, e.RetryAfter)
	}
	require.NoError(t, r.Request("acme", "bob"), "another user is not affected")
	require.NoError(t, r.Request("globex", "ada"), "nor another tenant")
	accepted := 0
	for range 1000 {
		c.advance(10 * time.Millisecond)
		if r.Request("acme", "ada") == nil {
			accepted++
		}
	}
	require.InDelta(t, 200, accepted, 1, "in ten seconds")
	c.advance(-time.Hour)
	require.Error(t, r.Request("acme", "ada"), "a clock that is set back opens nothing")
}

func TestRunsHaveTheirOwnRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, nil)
	for range 40 {
		require.NoError(t, r.Run("acme", "ada"))
	}
	require.ErrorIs(t, r.Run("acme", "ada"), auth.ErrRateLimited)
	require.NoError(t, r.Request("acme", "ada"))
	c.advance(200 * time.Millisecond)
	require.NoError(t, r.Run("acme", "ada"))
	require.ErrorIs(t, r.Run("acme", "ada"), auth.ErrRateLimited)
}

func TestARateOfZeroDoesNotLimit(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, func(cfg *auth.RateConfig) { cfg.Requests, cfg.Burst = 0, 0 })
	for range 1000 {
		require.NoError(t, r.Request("acme", "ada"))
	}
	require.NoError(t, r.Run("acme", "ada"), "a burst is at least 1")
	require.ErrorIs(t, r.Run("acme", "ada"), auth.ErrRateLimited)
}

func TestTenantHasABudgetForAllOfItsUsers(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, func(cfg *auth.RateConfig) { cfg.Tenant, cfg.Burst = 100, 2 })
	for i := range 100 {
		require.NoError(t, r.Request("acme", strconv.Itoa(i)))
	}
	var e *auth.Error
	require.ErrorAs(t, r.Request("acme", "ada"), &e)
	require.Equal(t, 10*time.Millisecond, e.RetryAfter)
	require.ErrorIs(t, r.Tenant("acme"), auth.ErrRateLimited)
	require.NoError(t, r.Request("globex", "ada"), "another tenant is not affected")
	c.advance(10 * time.Millisecond)
	for range 5 {
		require.NoError(t, r.Tenant("acme"))
		require.ErrorIs(t, r.Request("acme", "ada"), auth.ErrRateLimited)
		c.advance(10 * time.Millisecond)
	}
	c.advance(10 * time.Millisecond)
	require.NoError(t, r.Request("acme", "ada"))
	require.NoError(t, r.Request("acme", "ada"), "what the tenant was refused has cost the user nothing")
}

func TestUserWhomAServiceNamesHasItsOwnRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, nil)
	for range 40 {
		require.NoError(t, r.User("acme", "ada"))
	}
	require.ErrorIs(t, r.User("acme", "ada"), auth.ErrRateLimited)
	require.ErrorIs(t, r.Request("acme", "ada"), auth.ErrRateLimited, "it is one rate")
	require.NoError(t, r.User("acme", "bob"))
}

// A user who is forgotten would begin with a full burst: made-up users must not lead to that.
func TestManyUsersDoNotRenewTheBurstOfOne(t *testing.T) {
	t.Parallel()
	c := newClock()
	r := newRates(c, func(cfg *auth.RateConfig) { cfg.Burst, cfg.Tenant = 1, 0 })
	require.NoError(t, r.Request("acme", "ada"))
	accepted := 0
	for i := range 200_000 {
		if r.Request("acme", strconv.Itoa(i)) == nil {
			accepted++
		}
	}
	require.Equal(t, 49_999, accepted, "the tenant has half of the places")
	require.ErrorIs(t, r.Request("acme", "ada"), auth.ErrRateLimited)
	require.NoError(t, r.Request("globex", "ada"), "another tenant finds places")
	c.advance(50 * time.Millisecond)
	require.NoError(t, r.Request("acme", "ada"))
	for i := range 10_000 {
		require.NoError(t, r.Request("acme", "later "+strconv.Itoa(i)), "places of full buckets are free")
	}
}

func TestPlacesAreLimitedForAUserAndForAll(t *testing.T) {
	t.Parallel()
	p := auth.NewPlaces(auth.PlaceLimits{Total: 3, PerTenant: 3, PerUser: 2})
	take := func(app, user string) func() {
		release, err := p.Take(app, user)
		require.NoError(t, err)
		return release
	}
	first := take("acme", "ada")
	take("acme", "ada")
	_, err := p.Take("acme", "ada")
	require.ErrorIs(t, err, auth.ErrRateLimited)
	other := take("globex", "ada")
	_, err = p.Take("acme", "bob")
	require.ErrorIs(t, err, auth.ErrUnavailable)
	var e *auth.Error
	require.ErrorAs(t, err, &e)
	require.Positive(t, e.RetryAfter)
	first()
	first() // again: nothing happens
	require.Equal(t, 2, p.Open())
	take("acme", "ada")
	_, err = p.Take("acme", "ada")
	require.Error(t, err)
	other()
	require.Equal(t, 2, p.Open())

	unlimited := auth.NewPlaces(auth.PlaceLimits{})
	for range 100 {
		_, err := unlimited.Take("acme", "ada")
		require.NoError(t, err)
	}
}

func TestTenantLeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	p := auth.NewPlaces(auth.PlaceLimits{Total: 10})
	var last func()
	for i := range 9 {
		release, err := p.Take("acme", strconv.Itoa(i))
		require.NoError(t, err)
		last = release
	}
	_, err := p.Take("acme", "ada")
	require.ErrorIs(t, err, auth.ErrRateLimited)
	_, err = p.Take("globex", "ada")
	require.NoError(t, err)
	last()
	_, err = p.Take("acme", "ada")
	require.NoError(t, err)
}

func TestPlacesAreCountedUnderLoad(t *testing.T) {
	t.Parallel()
	p := auth.NewPlaces(auth.PlaceLimits{Total: 10, PerTenant: 10, PerUser: 5})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 200 {
				release, err := p.Take("acme", strconv.Itoa(i%4))
				if open := p.Open(); open > 10 {
					panic("too many: " + strconv.Itoa(open))
				}
				if err == nil {
					release()
				} else if !errors.Is(err, auth.ErrRateLimited) && !errors.Is(err, auth.ErrUnavailable) {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, p.Open())
}
