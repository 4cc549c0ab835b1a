package auth

import (
	"sync"
	"time"
)

// The connections that may be open in a gateway without settings.
const (
	DefaultPlaces        = 10_000
	DefaultPlacesPerUser = 1_000
	// DefaultShare is the part of all places that one tenant may have, in tenths: others find places whatever it does.
	DefaultShare = 9
)

// placesRetry is when a client may try again whose connection found no place.
const placesRetry = 5 * time.Second

// Places limits the sockets and streams that are open at the same time: of each user and of each tenant, so that one cannot
// take the places of all, and of the gateway.
type Places struct {
	limits PlaceLimits

	mu      sync.Mutex
	taken   int
	users   map[appUser]int // those with an open connection
	tenants map[string]int  // likewise
}

// PlaceLimits are how many connections may be open; 0 for no limit.
type PlaceLimits struct {
	Total     int
	PerTenant int // also 0 for [DefaultShare] tenths of Total
	PerUser   int
}

// NewPlaces returns places for so many connections.
func NewPlaces(l PlaceLimits) *Places {
	if l.PerTenant == 0 && l.Total > 0 {
		l.PerTenant = max(1, l.Total*DefaultShare/10) //nolint:mnd // tenths
	}
	return &Places{limits: l, users: map[appUser]int{}, tenants: map[string]int{}}
}

// Take takes a place for a connection of a user of a tenant, until release is called, which may happen more than once. An
// error is [ErrRateLimited] if the user or the tenant has all its places, [ErrUnavailable] if the gateway is full.
func (p *Places) Take(app, user string) (release func(), err error) {
	key := appUser{app, user}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.limits.PerUser > 0 && p.users[key] >= p.limits.PerUser:
		return nil, &Error{Code: CodeRateLimited, Msg: "too many open connections of this user: close some", RetryAfter: placesRetry}
	case p.limits.PerTenant > 0 && p.tenants[app] >= p.limits.PerTenant:
		return nil, &Error{Code: CodeRateLimited, Msg: "too many open connections of this tenant: close some", RetryAfter: placesRetry}
	case p.limits.Total > 0 && p.taken >= p.limits.Total:
		return nil, &Error{Code: CodeUnavailable, Msg: "the gateway has too many open connections: try again", RetryAfter: placesRetry}
	}
	p.taken++
	p.users[key]++
	p.tenants[app]++
	return sync.OnceFunc(func() { p.release(key) }), nil
}

// Open returns how many places are taken.
func (p *Places) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

func (p *Places) release(key appUser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.users[key]--; p.users[key] <= 0 {
		delete(p.users, key)
	}
	if p.tenants[key.app]--; p.tenants[key.app] <= 0 {
		delete(p.tenants, key.app)
	}
}
