package main

import (
	"strings"
	"sync"
	"time"
)

// aloneCheck caches for a moment whether this worker is the only one on its server: every turn of an unknown
// workflow needs to know it, and finding out reads all connections.
type aloneCheck struct {
	count func() (workers int, err error)
	now   func() time.Time

	mu    sync.Mutex
	until time.Time
	only  bool
}

// aloneFor is how long a result is cached.
const aloneFor = time.Second

func (a *aloneCheck) is() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.After(a.until) {
		n, err := a.count()
		a.only, a.until = err == nil && n <= 1, now.Add(aloneFor)
	}
	return a.only
}

// workers counts the workers on the embedded server: each serves the request API.
func (l *natsLink) workers() (int, error) {
	return l.server.Subscribers(strings.TrimSuffix(l.space.APIForAll(""), "*."))
}

// alone returns a function that reports whether no other worker is on the embedded server.
func (l *natsLink) alone() func() bool {
	return (&aloneCheck{count: l.workers, now: time.Now}).is
}
