package handlers

import (
	"context"
	"log/slog"

	"github.com/oneturn/oneturn/internal/throttle"
)

// MayReply reports whether a reply may go to a subject that the sender of a message has chosen,
// see [subjects.Space.MayReply]. One that may not is counted and, once a minute at most, logged with
// the subject that the message came on.
func (h *Handlers) MayReply(reply, from string) bool {
	if h.Space.MayReply(reply) {
		return true
	}
	h.Metrics.RepliesRefused.Inc()
	h.lines.Log(context.Background(), h.Logger, h.Now(), "reply", "", 1, slog.LevelWarn,
		"reply subject not allowed: it is not an inbox, and nothing is sent there; use an inbox, or add its prefix to the reply prefixes of the workers",
		"reply", throttle.Cut(reply), "subject", throttle.Cut(from))
	return false
}
