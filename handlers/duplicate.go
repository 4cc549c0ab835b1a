package handlers

import (
	"context"
	"log/slog"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
)

// What becomes of a message whose turn needs no run: another message has claimed it, or it has ended.

// damagedEnd keeps the message of a turn whose response cannot be read. Nothing can be stored in
// its place, and readers are told by the request API; the tool is not entered (again).
func (h *Handlers) damagedEnd(t *turn) inbound.Disposition {
	h.often(t.m, slog.LevelError, "the response of a turn cannot be read; its message becomes a dead letter", "", "key", t.Key.String())
	return h.dead(t.m, deadletter.ReasonStateCorrupt, idempotency.ErrDamaged)
}

// anothers handles a message whose turn another message has claimed.
func (h *Handlers) anothers(ctx context.Context, t *turn) inbound.Disposition {
	if d, copied := h.resumeCopy(ctx, t.m, t.Key, t.StructuredOutputReady); copied {
		return d
	}
	return h.duplicate(t)
}

// late acknowledges a message whose turn has its response.
func (h *Handlers) late(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	if d.Code == events.CodeStateCorrupt {
		return h.damagedEnd(t)
	}
	if err := h.mergeMissing(t.m.Held, ctx, t.m, d.End); err != nil {
		return h.comesBack(t, "the context changes of a response are not merged yet", err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return h.duplicate(t)
}

// duplicate acknowledges a message whose turn is somebody else's or has ended.
func (h *Handlers) duplicate(t *turn) inbound.Disposition {
	h.Metrics.Duplicates.Inc()
	h.Logger.Debug("duplicate", "chat", t.Chat, "turn", t.CallID, "seq", t.m.Lease.Seq)
	return inbound.Acked()
}
