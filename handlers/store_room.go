package handlers

import (
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
)

// fullFirst is how soon a new turn that no worker has claimed comes again while the store is nearly
// full, at first.
const fullFirst = 3 * time.Second

// errFull says why a turn is not claimed.
var errFull = errors.New("the store has no room for it, and as many messages of the tenant wait as may: make room, and publish it again (turnctl dead redrive)")

// whileFull gives a message whose turn no worker has claimed back while the store is nearly full, or the tenant has its
// share of what the store has room for. What is left of the store is for what ends open turns: responses, answers,
// expiries, cancels and resumes. So one that can neither keep a place nor be put aside becomes a dead
// letter, which has a share of the store, and not a rejected turn, which has none. A cancel of such a turn, which would
// have to store its end, may use a part of that as well.
func (h *Handlers) whileFull(t *turn, claimed func(*turn) (bool, error)) (inbound.Disposition, bool) {
	if h.takesRoom(t) {
		return inbound.Disposition{}, false
	}
	switch claimed, err := claimed(t); {
	case err != nil:
		return h.unclaimed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	const part = 4
	t.m.turns = t.keys()
	if d, back := h.giveBack(t.m, min(max(h.age(t.m)/part, fullFirst), longestPlace)); back {
		return d, true
	}
	return h.deadUnclaimed(t, errFull), true
}

// takesRoom reports whether there is room for a new turn, and counts it.
func (h *Handlers) takesRoom(t *turn) bool {
	cancels := t.reject != nil && t.reject.code == events.CodeCancelled
	if h.Full != nil && !cancels {
		if full, _ := h.Full(); full {
			return false
		}
	}
	left, spare, look := h.roomLeft()
	if look == 0 {
		return true
	}
	bytes := int64(store.TurnOverhead)
	switch {
	case cancels:
		left += spare
	case t.reject == nil:
		bytes += int64(len(t.m.Data))
	}
	if !h.shares.Take(t.Key.App, bytes, left, look, h.Now()) {
		h.often(t.m, slog.LevelWarn, "a tenant has its share of what the store has room for: its new turns wait; make room, or raise the limit of the store", "",
			"app", throttle.Cut(t.App), "left", left)
		return false
	}
	t.took = bytes
	return true
}

// noRoomTaken takes back what was counted for a turn that was not claimed anew.
func (h *Handlers) noRoomTaken(t *turn, d idempotency.Decision, err error) {
	if t.took > 0 && (err != nil || d.Turn != nil || d.Action != idempotency.Run && d.Action != idempotency.EndTurn) {
		h.shares.Add(t.Key.App, -t.took, h.Now())
		t.took = 0
	}
}

// addRoom counts what is stored for a turn that was claimed.
func (h *Handlers) addRoom(app string, bytes int) {
	if _, _, look := h.roomLeft(); look > 0 {
		h.shares.Add(app, int64(bytes), h.Now())
	}
}

func (h *Handlers) roomLeft() (left, spare int64, look uint64) {
	if h.StoreLeft == nil {
		return 0, 0, 0
	}
	return h.StoreLeft()
}

// counted reports whether the deliveries of a message of a turn count as attempts to claim it. They
// do not when it was in the stream while there was no room for it: workers gave it back.
func (h *Handlers) counted(m *message) bool {
	now, age := h.Now(), h.age(m)
	if app, _ := h.Space.InSender(m.Subject); h.shares.RefusedSince(app, now.Add(-age)) {
		return false
	}
	if h.Full == nil {
		return true
	}
	full, last := h.Full()
	return !full && (last.IsZero() || age < now.Sub(last))
}
