package handlers

import (
	"sync"
	"time"
)

// Bounds of the messages that come back because their question is not known: each holds a place
// among the messages that the consumer has under way, which are those of all tenants.
const (
	earlyOfOne = 500 // of a tenant, that begin to come back within earlyFor
	earlyOfAll = 2_000
)

// strays counts them. The zero value is usable, and safe for concurrent use.
type strays struct {
	mu    sync.Mutex
	since time.Time
	all   int
	of    map[string]int // by the token of the tenant
}

// admit counts one more of a tenant, unless there are too many.
func (e *strays) admit(app string, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.of == nil || now.Sub(e.since) >= earlyFor {
		e.since, e.all, e.of = now, 0, map[string]int{}
	}
	if e.all >= earlyOfAll || e.of[app] >= earlyOfOne {
		return false
	}
	e.all++
	e.of[app]++
	return true
}
