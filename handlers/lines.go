package handlers

import (
	"log/slog"

	"github.com/oneturn/oneturn/internal/throttle"
)

// often logs what became of a message. Its tenant can send any number of those, so that only some lines
// of a kind are written in a minute and the next one has the number of the others, see [throttle.Lines];
// what happened is counted by the metrics each time. A kind, like a reason, is one of few.
func (h *Handlers) often(m *message, level slog.Level, msg, kind string, args ...any) {
	app, _ := h.Space.InSender(m.Subject)
	h.lines.Log(m.Held, h.Logger, h.Now(), msg+" "+kind, app, throttle.Several, level, msg, args...)
}
