package handlers

import (
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
)

// unopened handles a sealed message that this worker cannot open. Another worker may have its key, as while
// keys are rotated, so it is given back for as long as a turn may live.
func (h *Handlers) unopened(m *message, err error) inbound.Disposition {
	age := h.age(m)
	if !m.ByWorker || !errors.Is(err, secrets.ErrUnknownKey) || h.MaxTurnLife > 0 && age >= h.MaxTurnLife {
		return h.unparsed(m, err)
	}
	h.often(m, slog.LevelWarn, "an answer that was put aside waits for a worker with its key", "", "seq", m.Lease.Seq,
		"age", age.Round(time.Second), "err", events.LogText(err))
	if d, back := h.giveBack(m, h.rarely(m)); back {
		return d
	}
	d := h.ackUnlessHeldLater(m)
	if d.Do == inbound.Ack {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerUnknown)).Inc()
		h.tell(m, events.NewAnswerResult(events.AnswerUnknown, "", textNoRoom))
	}
	return d
}
