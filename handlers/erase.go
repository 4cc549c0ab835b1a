package handlers

import (
	"log/slog"
	"time"
)

// Bounds of erasing a message that was a secret answer.
const (
	// erasePause is how long after a failure it is tried again.
	erasePause = 5 * time.Second
	// eraseFor is how long a message is kept in the stream for that, by the server's clock; then it is
	// acknowledged.
	eraseFor = time.Hour
	// eraseTimeout bounds one try.
	eraseTimeout = 5 * time.Second
)

// Bounds of erasing messages of which it is not known whether they are secret. Of 64 places that are
// taken for ten seconds a tenant alone gets half: three messages a second, and 32 at once.
const (
	erasures   = 64
	erasureFor = 10 * time.Second
)

// erases reports whether a message that is acknowledged is overwritten in its stream's file as well, for
// which the server writes megabytes and syncs them. Each one is that answers a secret question. Of
// those that answer no question, or cannot be read, nobody knows: a tenant has some of them erased and no
// flood of them, behind which every other tenant would wait. What came sealed tells nobody anything.
func (h *Handlers) erases(m *message) bool {
	switch {
	case m.asksSecret:
		return m.secret
	case !m.secret, m.Sealed:
		return false
	}
	in, _ := h.Space.ParseIn(m.Subject)
	if h.erased.TakeFor(in.App, 1, h.Now(), erasureFor) {
		return true
	}
	h.often(m, slog.LevelWarn, "an answer to no known question is acknowledged and not erased: the tenant sends too many", "", "seq", m.Lease.Seq)
	return false
}

// eraseAgain is how long after a failure to erase a message it is tried again, 0 if it is not.
func (h *Handlers) eraseAgain(m *message) time.Duration {
	if h.serverNow(m).Sub(m.Arrived) < eraseFor {
		return erasePause
	}
	return 0
}
