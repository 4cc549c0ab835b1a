package timers

import (
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/throttle"
)

// logThrottled logs a line about a message that is due, at a bounded rate for each tenant. The subject names the tenant.
func (t *Timers) logThrottled(m *inbound.Message, level slog.Level, msg, kind string, args ...any) {
	s, app := t.Sweep, ""
	if key, _, ok := s.Space.ParseAskDue(m.Subject); ok {
		app = key.App
	} else if inbound, ok := s.Space.ParseDeferralDue(m.Subject); ok {
		in, _ := s.Space.ParseIn(inbound)
		app = in.App
	}
	t.lines.Log(m.Held, s.Logger, time.Now(), msg+" "+kind, app, throttle.Several, level, msg, args...)
}
