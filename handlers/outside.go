package handlers

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// shrink makes a blob of a payload that no record should hold. Most payloads are small and
// cost nothing here.
func (h *Handlers) shrink(lease, tools context.Context, key subjects.Key, kind string, value any, data []byte) (any, error) {
	if h.Blobs.Inline(len(data)) {
		return value, nil
	}
	if kind != events.KindToolCall { // that was counted with its message
		h.addRoom(key.App, len(data))
	}
	ctx, done := store.Context(lease, tools)
	defer done()
	return h.Blobs.Shrink(ctx, key, kind, value, data)
}

// reason is the text of an error for a response.
func reason(err error) string {
	var e *events.Error
	switch {
	case errors.As(err, &e) && e.Msg != "":
		return e.Msg
	case errors.Is(err, ErrDraining):
		return "the worker stopped before the store had answered"
	}
	return err.Error()
}

// unstorable returns the code with which a turn ends when what its tool returned or changed
// is not stored because of err, "" when its message comes back instead.
func unstorable(t *turn, err error) events.Code {
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		return events.CodeStateCorrupt
	case store.Decided(err):
		return events.CodeTooLarge
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe: // nobody runs it again
		return events.CodeInterrupted
	}
	return ""
}

// comesBack is what becomes of a message whose work outside the journal has no outcome.
func (h *Handlers) comesBack(t *turn, what string, err error) inbound.Disposition {
	h.often(t.m, slog.LevelWarn, "the message comes back", what, "why", what, "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", events.LogText(err))
	if errors.Is(err, ErrDraining) {
		return inbound.NakAfter(0)
	}
	return inbound.Left()
}
