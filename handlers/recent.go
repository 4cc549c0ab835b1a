package handlers

import "sync"

// recent remembers the last so many keys. Keys without pointers cost the collector nothing.
type recent[K comparable] struct {
	mu    sync.Mutex
	size  int
	ring  []K
	next  int // oldest of a full ring
	known map[K]struct{}
}

func newRecent[K comparable](size int) *recent[K] {
	return &recent[K]{size: size, known: map[K]struct{}{}}
}

func (r *recent[K]) has(key K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[key]
	return ok
}

// add remembers key and reports whether it was known. The oldest one is forgotten for it.
func (r *recent[K]) add(key K) (known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known = r.known[key]; known {
		return true
	}
	r.known[key] = struct{}{}
	if len(r.ring) < r.size {
		r.ring = append(r.ring, key)
		return false
	}
	delete(r.known, r.ring[r.next])
	r.ring[r.next] = key
	r.next = (r.next + 1) % r.size
	return false
}
