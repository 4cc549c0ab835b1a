package handlers

import (
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/internal/throttle"
)

// often logs what became of a message. Its tenant can send any number of those, so that only some lines
// of a kind are written in a minute and the next one has the number of the others, see [throttle.Lines];
// what happened is counted by the metrics each time. A kind, like a reason, is one of few.
func (h *Handlers) often(m *Message, level slog.Level, msg, kind string, args ...any) {
	app, _ := h.Space.InSender(m.Subject)
	h.lines.Log(m.Held, h.Logger, h.Now(), msg+" "+kind, app, throttle.Several, level, msg, args...)
}

// often is [Handlers.often] for messages that are due: whose they are is in their subjects.
func (t *Timers) often(m *Message, level slog.Level, msg, kind string, args ...any) {
	s, app := t.Sweep, ""
	if key, _, ok := s.Space.ParseAskDue(m.Subject); ok {
		app = key.App
	} else if inbound, ok := s.Space.ParseDeferralDue(m.Subject); ok {
		in, _ := s.Space.ParseIn(inbound)
		app = in.App
	}
	t.lines.Log(m.Held, s.Logger, time.Now(), msg+" "+kind, app, throttle.Several, level, msg, args...)
}
