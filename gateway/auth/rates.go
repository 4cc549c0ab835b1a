package auth

import "time"

// RateConfig has the rates of [NewRates].
type RateConfig struct {
	Requests float64 // requests per second of a user; 0 for no limit
	Runs     float64 // runs that a user starts per second; 0 for no limit
	Burst    int     // how many may come at the same time; at least 1
	Tenant   float64 // requests per second of all users of a tenant, as many of them at the same time; 0 for no limit

	Now func() time.Time // default [time.Now]
}

// DefaultRates are the rates of a gateway without settings.
func DefaultRates() RateConfig { return RateConfig{Requests: 20, Runs: 5, Burst: 40, Tenant: 2000} } //nolint:mnd // the rule itself

// Rates limits how often each user sends requests and starts runs, in this gateway, and all users of a tenant together.
type Rates struct {
	now                     func() time.Time
	requests, runs, tenants *buckets
}

// NewRates returns the limits of a gateway.
func NewRates(cfg RateConfig) *Rates {
	now := cfg.Now
	if now == nil {
		now = time.Now
	}
	return &Rates{
		now, newBuckets(cfg.Requests, cfg.Burst), newBuckets(cfg.Runs, cfg.Burst), newBuckets(cfg.Tenant, max(cfg.Burst, int(cfg.Tenant))),
	}
}

// Request counts a request of a user of a tenant. An error is [ErrRateLimited], with the time until the next one is accepted.
func (r *Rates) Request(app, user string) error {
	now := r.now()
	release, wait := r.requests.take(appUser{app, user}, now)
	if wait > 0 {
		return limited(wait, "too many requests: send fewer, or wait")
	}
	err := r.tenant(app, now)
	if err != nil {
		release() // the user has not caused it
	}
	return err
}

// User counts a request that [Rates.Tenant] has counted, when it is known whose it is: the user that a service names.
func (r *Rates) User(app, user string) error {
	if _, wait := r.requests.take(appUser{app, user}, r.now()); wait > 0 {
		return limited(wait, "too many requests for this user: send fewer, or wait")
	}
	return nil
}

// Tenant counts a request of a tenant whose user is not known yet.
func (r *Rates) Tenant(app string) error { return r.tenant(app, r.now()) }

func (r *Rates) tenant(app string, now time.Time) error {
	if _, wait := r.tenants.take(appUser{app: app}, now); wait > 0 {
		return limited(wait, "too many requests of this tenant: send fewer, or wait")
	}
	return nil
}

// Run counts a run that a user starts, as [Rates.Request] does.
func (r *Rates) Run(app, user string) error {
	if _, wait := r.runs.take(appUser{app, user}, r.now()); wait > 0 {
		return limited(wait, "too many runs were started: start fewer, or wait")
	}
	return nil
}

func limited(wait time.Duration, msg string) error {
	return &Error{Code: CodeRateLimited, Msg: msg, RetryAfter: wait}
}
