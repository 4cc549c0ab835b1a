package gateway

import (
	"sync"
	"time"
)

// stoppedWait is a user's message that waits for its turn, in a run that the user has stopped. It does not keep the next message
// away. Gateways that start later do not know it: for them a message from before their start waits only while a run is open.
type stoppedWait struct{ app, chat, message string }

// stoppedWaits bounds those that a gateway remembers.
const stoppedWaits = 10_000

// releasedWaits are messages that no run waits for, each remembered for a while. One that is forgotten keeps the next message of its chat
// away, so the tenant that has the most makes room: what one tenant stops makes a gateway forget nothing of others.
type releasedWaits struct {
	most int
	age  time.Duration

	mu    sync.Mutex
	known map[stoppedWait]time.Time // when it was stopped
	of    map[string][]stoppedWait  // by tenant, the oldest first
}

func newReleasedWaits(most int, age time.Duration) *releasedWaits {
	return &releasedWaits{most: most, age: age, known: map[stoppedWait]time.Time{}, of: map[string][]stoppedWait{}}
}

// Has reports whether a message is remembered.
func (r *releasedWaits) Has(w stoppedWait, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.known[w]
	return ok && now.Sub(at) < r.age
}

// Add remembers a message.
func (r *releasedWaits) Add(w stoppedWait, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[w]; !known {
		if len(r.known) >= r.most {
			r.forget()
		}
		r.of[w.app] = append(r.of[w.app], w)
	}
	r.known[w] = now
}

// forget forgets the oldest one of the tenant that has the most.
func (r *releasedWaits) forget() {
	app := ""
	for of, waits := range r.of {
		if len(waits) > len(r.of[app]) {
			app = of
		}
	}
	waits := r.of[app]
	delete(r.known, waits[0])
	if r.of[app] = waits[1:]; len(waits) == 1 {
		delete(r.of, app)
	}
}
