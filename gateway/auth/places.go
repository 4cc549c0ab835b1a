package auth

import (
	"sync"
	"time"
)

// The connections that may be open in a gateway without settings.
const (
	DefaultPlaces        = 10_000
	DefaultPlacesPerUser = 1_000
)

// placesRetry is when a client may try again whose connection found no place.
const placesRetry = 5 * time.Second

// Places limits the sockets and streams that are open at the same time: of each user, so that one cannot take the places of
// all, and of the gateway.
type Places struct {
	total, perUser int

	mu    sync.Mutex
	taken int
	users map[appUser]int // those with an open connection
}

// NewPlaces returns places for so many connections in total and for each user; 0 for no limit.
func NewPlaces(total, perUser int) *Places {
	return &Places{total: total, perUser: perUser, users: map[appUser]int{}}
}

// Take takes a place for a connection of a user of a tenant, until release is called, which may happen more than once. An
// error is [ErrRateLimited] if the user has all its places, [ErrUnavailable] if the gateway is full.
func (p *Places) Take(app, user string) (release func(), err error) {
	key := appUser{app, user}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.perUser > 0 && p.users[key] >= p.perUser:
		return nil, &Error{Code: CodeRateLimited, Msg: "too many open connections of this user: close some", RetryAfter: placesRetry}
	case p.total > 0 && p.taken >= p.total:
		return nil, &Error{Code: CodeUnavailable, Msg: "the gateway has too many open connections: try again", RetryAfter: placesRetry}
	}
	p.taken++
	p.users[key]++
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
}
