package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
)

// staleFor is how long after a response a read that does not find what was stored before it is taken for a stale one.
const staleFor = 5 * time.Minute

// ended acknowledges a message that has nothing (more) to do for its turn, once what the response
// of the turn changes in the context variables is merged.
func (h *Handlers) ended(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if err := h.mergeMissing(m.Held, ctx, m, d.End); err != nil {
		return h.undecided(m, "the context changes of a response are not merged yet", err)
	}
	return inbound.Acked()
}

// endedByOther acknowledges the message of a turn whose response is another run's, once its changes are merged: the worker
// that stored it may have died, and this message may be the last one of the turn.
func (h *Handlers) endedByOther(ctx context.Context, t *turn) inbound.Disposition {
	end, err := h.Journal.End(ctx, t.Key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound): // it has expired, or was purged
		return inbound.Acked()
	case err == nil:
		err = h.mergeMissing(ctx, t.m.tools, t.m, &end)
	}
	if err != nil {
		return h.comesBack(t, "the context changes of a response are not merged yet", err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return inbound.Acked()
}

// mergeMissing merges the context changes that a stored response names, unless they are: the
// worker that stored it may have died before it could. End is nil for a turn that has not ended. The changes are older
// than their response, so a read that finds the response alone may be stale, and is repeated for a while, when the
// message is delivered again.
//
// It reads and writes as long as ctx lives, and what is not decided soon ends with the tools of the worker.
func (h *Handlers) mergeMissing(ctx, tools context.Context, m *message, end *idempotency.Record) error {
	if end == nil || !query.NamesContext(end) {
		return nil
	}
	r := query.Response(end)
	found, err := h.Journal.DeltaOf(ctx, end)
	switch {
	case errors.Is(err, idempotency.ErrDamaged):
		return h.merged(variables.DamagedDelta(err), r.ChatID, r.CallID)
	case errors.Is(err, idempotency.ErrNotFound) && h.serverNow(m).Sub(end.Time) > staleFor: // it has expired, or was purged
		return nil
	case err != nil:
		return err
	}
	d, err := variables.DecodeDelta(found.Data)
	if err != nil {
		return h.merged(err, r.ChatID, r.CallID)
	}
	writing, done := store.Context(ctx, tools)
	defer done()
	return h.merged(h.Variables.Merge(writing, r.AppID, r.ChatID, found.Seq, d), r.ChatID, r.CallID)
}

// merged judges what came of a merge after the response was stored. That the changes can never be
// merged, though they could be staged, is for an operator to know: the message cannot help.
func (h *Handlers) merged(err error, chat, turn string) error {
	if err == nil || !store.Decided(err) {
		return err
	}
	h.Logger.Error("context changes that a response names cannot be merged; they stay in the journal", "chat", chat, "turn", turn, "err", events.LogText(err))
	return nil
}
