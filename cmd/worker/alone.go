package main

import (
	"strings"
	"sync"
	"time"
)

// alone knows for a moment whether this worker is the only one on its server: the question comes
// with every turn of an unknown workflow, and the answer costs a look at all connections.
type alone struct {
	look func() (workers int, err error)
	now  func() time.Time

	mu    sync.Mutex
	until time.Time
	only  bool
}

// aloneFor is how long a look counts.
const aloneFor = time.Second

func (a *alone) is() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.After(a.until) {
		n, err := a.look()
		a.only, a.until = err == nil && n <= 1, now.Add(aloneFor)
	}
	return a.only
}

// workers counts the workers on the embedded server: each serves the request API.
func (b *bus) workers() (int, error) {
	return b.own.Subscribers(strings.TrimSuffix(b.space.APIForAll(""), "*."))
}

// alone returns the function that knows whether there is no other worker on the embedded server.
func (b *bus) alone() func() bool {
	return (&alone{look: b.workers, now: time.Now}).is
}
