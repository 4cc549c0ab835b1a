package handlers

import (
	"context"
	"sync"
)

// running holds the tools that run in this process, by journal key, so that a cancel finds
// them.
type running struct {
	mu   sync.Mutex
	runs map[string]*run
}

type run struct{ stop context.CancelCauseFunc }

func newRunning() *running { return &running{runs: map[string]*run{}} }

// add enters a run.
func (r *running) add(key string, stop context.CancelCauseFunc) *run {
	entry := &run{stop}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[key] = entry
	return entry
}

// remove takes a run out, unless another one has come in its place.
func (r *running) remove(key string, entry *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[key] == entry {
		delete(r.runs, key)
	}
}

func (r *running) stop(key string, cause error) {
	r.mu.Lock()
	entry := r.runs[key]
	r.mu.Unlock()
	if entry != nil {
		entry.stop(cause)
	}
}

func (r *running) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.runs)
}
