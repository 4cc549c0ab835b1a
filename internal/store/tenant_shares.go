package store

import (
	"math"
	"sync"
	"time"
)

// Shares of tenants in what the store has room for. They are counted by each worker in memory, so that a
// tenant that sends to n workers may take n parts of n+1 of what is left, and that again half a day later.
const (
	halfLife     = 12 * time.Hour // half of what a tenant has stored counts no longer after that
	forgets      = 5 * halfLife
	TurnOverhead = 2 << 10 // bytes of the records of a turn besides its data
	maxTenants   = 4_096   // that are counted
)

// Shares divides the room of the store among tenants. A tenant may have more stored while it has recently had less
// stored than is left: alone with a second tenant it gets half of what there is. A tenant that is the only one
// has all of it. It is safe for concurrent use; the zero value is ready.
type Shares struct {
	mu    sync.Mutex
	of    map[string]*stored // by the token of the tenant
	read  uint64             // number of the last read of the store's usage
	since int64              // bytes that all tenants have taken since
}

// stored is what a tenant has recently had stored.
type stored struct {
	bytes   float64
	at      time.Time // of that count
	refused time.Time // when there was no share last
}

// Take counts so many bytes for a tenant, and reports whether it has a share of what was left when the usage of the
// store was last read. The reads are numbered.
func (s *Shares) Take(app string, bytes, left int64, read uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if read != s.read {
		s.read, s.since = read, 0
	}
	one := s.tenant(app, now)
	left -= s.since
	if bytes > left || one.bytes+float64(bytes) > float64(left) && s.others(app, now) {
		one.refused = now
		return false
	}
	one.bytes += float64(bytes)
	s.since += bytes
	return true
}

// Add counts bytes that are stored whatever the share is, or takes back those that were not.
func (s *Shares) Add(app string, bytes int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.tenant(app, now)
	one.bytes = max(one.bytes+float64(bytes), 0)
	s.since = max(s.since+bytes, 0)
}

// RefusedSince reports whether a tenant had no share at some time since.
func (s *Shares) RefusedSince(app string, since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[app]
	return one != nil && one.refused.After(since)
}

// tenant returns what counts of a tenant now.
func (s *Shares) tenant(app string, now time.Time) *stored {
	one := s.of[app]
	if one == nil {
		if s.of == nil {
			s.of = map[string]*stored{}
		}
		if len(s.of) >= maxTenants {
			s.forgetLeast()
		}
		one = &stored{at: now}
		s.of[app] = one
	}
	if age := now.Sub(one.at); age > 0 {
		one.bytes *= math.Exp2(-float64(age) / float64(halfLife))
		one.at = now
	}
	return one
}

// others reports whether another tenant has recently had anything stored, or wanted to.
func (s *Shares) others(app string, now time.Time) bool {
	for other, one := range s.of {
		if other == app {
			continue
		}
		if now.Sub(one.at) < forgets {
			return true
		}
		delete(s.of, other)
	}
	return false
}

// forgetLeast makes room for another tenant in the place of the one that has had the least stored.
func (s *Shares) forgetLeast() {
	least := ""
	for app, one := range s.of {
		if least == "" || one.bytes < s.of[least].bytes {
			least = app
		}
	}
	delete(s.of, least)
}
