package handlers

import (
	"log/slog"

	"github.com/oneturn/oneturn/events"
)

// mayPutAside reports whether a message may be put aside within the bounds of its tenant and of all. A
// store that is nearly full changes nothing: what is put aside leaves the inbound stream. Two kinds have no bound of
// their own. Expiries: workers alone send them, one for each open question, and that had a schedule before. And
// answers that come again: each had room before, which newer messages must not take from it.
func (h *Handlers) mayPutAside(m *message) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	if h.DeferralQuota == nil || in.Kind == events.KindExpire || m.ByWorker && m.Deferrals > 0 {
		return true
	}
	room, err := h.DeferralQuota(m.Held, in.App, m.Bytes(&m.Message))
	if err != nil {
		h.often(m, slog.LevelWarn, "what is put aside cannot be counted: the last count decides", "", "err", err)
	}
	if !room {
		h.often(m, slog.LevelWarn, "too much is put aside: messages that wait are decided at once", "", "seq", m.Lease.Seq)
	}
	return room
}
