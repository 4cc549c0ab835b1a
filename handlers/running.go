package handlers

import (
	"sync"
)

// running holds the tools that run in this process, by journal key, so that a cancel and the end
// of a question find them.
type running struct {
	mu   sync.Mutex
	runs map[string]*run
}

func newRunning() *running { return &running{runs: map[string]*run{}} }

// add enters a run.
func (r *running) add(key string, entry *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[key] = entry
}

// remove takes a run out, unless another one has come in its place.
func (r *running) remove(key string, entry *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[key] == entry {
		delete(r.runs, key)
	}
}

// find returns the run under a key, nil if there is none.
func (r *running) find(key string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[key]
}

// stop ends the context of the run under a key.
func (r *running) stop(key string, cause error) {
	if entry := r.find(key); entry != nil {
		entry.stop(cause)
	}
}

// all returns the runs of now.
func (r *running) all() []*run {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*run, 0, len(r.runs))
	for _, entry := range r.runs {
		list = append(list, entry)
	}
	return list
}

func (r *running) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.runs)
}
