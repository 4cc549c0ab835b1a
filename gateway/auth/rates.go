package auth

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// maxRateUsers bounds the users whose rates are counted. A user who is forgotten for another one begins with a full burst;
// that takes this many other users within the seconds in which a burst refills.
const maxRateUsers = 100_000

// RateConfig has the rates of [NewRates].
type RateConfig struct {
	Requests float64 // requests per second of a user; 0 for no limit
	Runs     float64 // runs that a user starts per second; 0 for no limit
	Burst    int     // how many may come at the same time; at least 1

	Now func() time.Time // default [time.Now]
}

// DefaultRates are the rates of a gateway without settings.
func DefaultRates() RateConfig { return RateConfig{Requests: 20, Runs: 5, Burst: 40} } //nolint:mnd // the rule itself

// Rates limits how often each user sends requests and starts runs, in this gateway.
type Rates struct {
	now            func() time.Time
	requests, runs *userRates
}

// NewRates returns the limits of a gateway.
func NewRates(cfg RateConfig) *Rates {
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	return &Rates{now, newUserRates(cfg.Requests, cfg.Burst), newUserRates(cfg.Runs, cfg.Burst)}
}

// Request counts a request of a user of a tenant. An error is [ErrRateLimited], with the time until the next one is accepted.
func (r *Rates) Request(app, user string) error {
	return r.requests.take(app, user, r.now(), "too many requests: send fewer, or wait")
}

// Run counts a run that a user starts, as [Rates.Request] does.
func (r *Rates) Run(app, user string) error {
	return r.runs.take(app, user, r.now(), "too many runs were started: start fewer, or wait")
}

// appUser is a user of a tenant.
type appUser struct{ app, user string }

// userRates has a bucket for each user; nil has no limit.
type userRates struct {
	perSecond rate.Limit
	burst     int

	mu    sync.Mutex
	users *simplelru.LRU[appUser, *rate.Limiter]
}

func newUserRates(perSecond float64, burst int) *userRates {
	if perSecond <= 0 {
		return nil
	}
	users, err := simplelru.NewLRU[appUser, *rate.Limiter](maxRateUsers, nil)
	if err != nil {
		panic(err) // a constant that is not positive
	}
	return &userRates{perSecond: rate.Limit(perSecond), burst: max(burst, 1), users: users}
}

func (u *userRates) take(app, user string, now time.Time, msg string) error {
	if u == nil {
		return nil
	}
	if wait := u.wait(appUser{app, user}, now); wait > 0 {
		return &Error{Code: CodeRateLimited, Msg: msg, RetryAfter: wait}
	}
	return nil
}

// wait takes a place from the bucket of a user, or returns how long none is free.
func (u *userRates) wait(key appUser, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	bucket, ok := u.users.Get(key)
	if !ok {
		bucket = rate.NewLimiter(u.perSecond, u.burst)
		u.users.Add(key, bucket)
	}
	place := bucket.ReserveN(now, 1)
	wait := place.DelayFrom(now)
	if wait > 0 {
		place.CancelAt(now) // a request that is refused costs nothing
	}
	return wait
}
