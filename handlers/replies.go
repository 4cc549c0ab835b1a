package handlers

import (
	"time"

	"golang.org/x/time/rate"
)

// refusalsLogged is how often refused replies are logged; all are counted.
const refusalsLogged = 10 * time.Second

// refusals are the replies that are not sent because their subject is not an inbox.
type refusals struct{ logged rate.Sometimes }

func newRefusals() *refusals { return &refusals{rate.Sometimes{Interval: refusalsLogged}} }

// MayReply reports whether a reply may go to a subject that the sender of a message has chosen,
// see [subjects.Space.MayReply]. One that may not is counted and, every 10 s at most, logged with
// the subject that the message came on.
func (h *Handlers) MayReply(reply, from string) bool {
	if h.Space.MayReply(reply) {
		return true
	}
	h.Metrics.RepliesRefused.Inc()
	h.refusals.logged.Do(func() {
		h.Logger.Warn("reply subject not allowed: it is not an inbox, and nothing is sent there; use an inbox, or add its prefix to the reply prefixes of the workers",
			"reply", cut(reply), "subject", cut(from))
	})
	return false
}

// cut bounds a subject in the log.
func cut(subject string) string { return subject[:min(len(subject), 200)] }
