// Package recent is a set of keys that expire after an age, in bounded memory.
package recent

import (
	"sync"
	"time"
)

// Set remembers the last so many keys, each for a while at most. Keys without pointers cost the
// collector nothing. It is safe for concurrent use.
type Set[K comparable] struct {
	size int
	age  time.Duration

	mu    sync.Mutex
	ring  []K
	next  int         // oldest of a full ring
	known map[K]int64 // when they were added, nanoseconds
}

// New returns a set of size keys that forgets a key after age. 0 means never.
func New[K comparable](size int, age time.Duration) *Set[K] {
	return &Set[K]{size: size, age: age, known: map[K]int64{}}
}

// Has reports whether a key is remembered.
func (s *Set[K]) Has(key K, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(key, now.UnixNano())
}

// Add remembers a key and reports whether it was remembered already. The oldest one is forgotten for
// it.
func (s *Set[K]) Add(key K, now time.Time) (known bool) {
	at := now.UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has(key, at) {
		return true
	}
	_, stale := s.known[key]
	s.known[key] = at
	switch {
	case stale: // it keeps its place
	case len(s.ring) < s.size:
		s.ring = append(s.ring, key)
	default:
		delete(s.known, s.ring[s.next])
		s.ring[s.next] = key
		s.next = (s.next + 1) % s.size
	}
	return false
}

// has reports whether a key was added within the age. With a clock that was set back it reports false.
func (s *Set[K]) has(key K, now int64) bool {
	at, ok := s.known[key]
	return ok && (s.age == 0 || now >= at && now-at < int64(s.age))
}
