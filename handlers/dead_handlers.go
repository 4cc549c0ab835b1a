package handlers

import (
	"errors"
	"log/slog"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
)

// dead moves a message to the dead letters, with its bytes and the reason. The message is
// acknowledged only when the dead letter is stored.
func (h *Handlers) dead(m *message, reason string, cause error) inbound.Disposition {
	if err := h.Dead.Put(m.Held, &m.Message, reason, cause); err != nil {
		h.often(m, slog.LevelError, "a dead letter could not be stored; the message comes back", reason, "reason", reason, "seq", m.Lease.Seq, "err", err)
		return inbound.Left()
	}
	h.Metrics.Dead.WithLabelValues(reason).Inc()
	h.often(m, slog.LevelWarn, "dead letter", reason, "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(cause))
	return inbound.Acked()
}

func tooLarge(what string, err error) error {
	msg := "the " + what + " of the tool are too large to store"
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" && errors.Is(err, idempotency.ErrRefused) { // it names the mend
		msg = "the " + what + " of the tool cannot be stored: " + e.Msg
	}
	return &events.Error{Code: events.CodeTooLarge, Msg: msg, Err: err}
}
