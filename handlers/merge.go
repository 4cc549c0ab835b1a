package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
)

// staleFor is how long after a response a read that does not find what was stored before it is taken for a stale one.
const staleFor = 5 * time.Minute

// ended acknowledges a message that has nothing (more) to do for its turn, once what the response
// of the turn changes in the context variables is merged.
func (h *Handlers) ended(ctx context.Context, m *Message, d idempotency.Decision) Disposition {
	if err := h.mergeMissing(m.Held, ctx, m, d.End); err != nil {
		return h.undecided(m, "the context changes of a response are not merged yet", err)
	}
	return ack()
}

// endedByOther acknowledges the message of a turn whose response is another run's, once its changes are merged: the worker
// that stored it may have died, and this message may be the last one of the turn.
func (h *Handlers) endedByOther(ctx context.Context, t *turn) Disposition {
	end, err := h.Journal.End(ctx, t.Key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound): // it has expired, or was purged
		return ack()
	case err == nil:
		err = h.mergeMissing(ctx, t.m.tools, t.m, &end)
	}
	if err != nil {
		return h.comesBack(t, "the context changes of a response are not merged yet", err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return ack()
}

// mergeMissing merges the context changes that a stored response names, unless they are: the
// worker that stored it may have died before it could. End is nil for a turn that has not ended. The changes are older
// than their response, so a read that finds the response alone may be stale, and is repeated for a while, when the
// message is delivered again.
//
// It reads and writes as long as ctx lives, and what is not decided soon ends with the tools of the worker.
func (h *Handlers) mergeMissing(ctx, tools context.Context, m *Message, end *idempotency.Record) error {
	if end == nil || !query.NamesContext(end) {
		return nil
	}
	r := query.Response(end)
	found, err := h.Journal.DeltaOf(ctx, end)
	switch {
	case errors.Is(err, idempotency.ErrDamaged):
		return h.merged(damagedDelta(err), r.ChatID, r.CallID)
	case errors.Is(err, idempotency.ErrNotFound) && h.serverNow(m).Sub(end.Time) > staleFor: // it has expired, or was purged
		return nil
	case err != nil:
		return err
	}
	d, err := decodeDelta(found.Data)
	if err != nil {
		return h.merged(err, r.ChatID, r.CallID)
	}
	store, done := outside(ctx, tools)
	defer done()
	return h.merged(h.Variables.Merge(store, r.AppID, r.ChatID, found.Seq, d), r.ChatID, r.CallID)
}

// merged judges what came of a merge after the response was stored. That the changes can never be
// merged, though they could be staged, is for an operator to know: the message cannot help.
func (h *Handlers) merged(err error, chat, turn string) error {
	if err == nil || !decided(err) {
		return err
	}
	h.Logger.Error("context changes that a response names cannot be merged; they stay in the journal", "chat", chat, "turn", turn, "err", events.LogText(err))
	return nil
}

// decodeDelta reads a stored delta.
func decodeDelta(data []byte) (Delta, error) {
	var e edit
	if err := json.Unmarshal(data, &e); err != nil {
		return Delta{}, damagedDelta(err)
	}
	d := Delta{Set: make(map[string]any, len(e.Set)), Remove: e.Remove, Base: e.Base}
	for name, raw := range e.Set {
		value, err := events.Decode(raw)
		if err != nil {
			return Delta{}, damagedDelta(err)
		}
		d.Set[name] = value
	}
	return d, nil
}

func damagedDelta(err error) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "read context changes", Msg: "a stored change of context variables cannot be read", Err: err}
}
