package handlers

import (
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// Room in the store: new turns and messages wait while the store is nearly full, or while their tenant has used its share of the
// free room ([store.Shares]). The rest of the store is for records that end open turns: responses, answers, expiries, cancels and
// resumes.

// fullDelay is the first delay of a new turn while the store is nearly full.
const fullDelay = 3 * time.Second

// errNoRoom is why a message that cannot wait becomes a dead letter.
var errNoRoom = errors.New("the store has no room for it, and the tenant has as many waiting messages as allowed: make room, and publish it again (turnctl dead redrive)")

// requeueWhileFull requeues the message of a turn that no worker has claimed while there is no room for a new turn. If it
// cannot be requeued it becomes a dead letter, which has a share of the store, and not a rejected turn, which has none.
func (h *Handlers) requeueWhileFull(t *turn, claimed func(*turn) (bool, error)) (inbound.Disposition, bool) {
	if h.reserveRoom(t) {
		return inbound.Disposition{}, false
	}
	return h.requeueUnclaimed(t, claimed, fullDelay, errNoRoom)
}

// requeueUnclaimed requeues the message of a turn that no worker has claimed, after a quarter of its age or the shortest delay. If it
// cannot be requeued it becomes a dead letter because of why. It reports false for a turn that is claimed: such a turn is continued.
func (h *Handlers) requeueUnclaimed(t *turn, claimed func(*turn) (bool, error), shortest time.Duration, why error) (inbound.Disposition, bool) {
	switch claimed, err := claimed(t); {
	case err != nil:
		return h.claimFailed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	t.m.mayHold = t.keys()
	if d, requeued := h.requeue(t.m, h.roomDelay(t.m, shortest)); requeued {
		return d, true
	}
	return h.deadUnclaimed(t, why), true
}

// reserveRoom reports whether there is room for a new turn, and counts it.
func (h *Handlers) reserveRoom(t *turn) (room bool) {
	bytes := store.TurnOverhead
	if t.reject == nil {
		bytes += len(t.m.Data)
	}
	t.reserved, room = h.takeRoom(t.m, t.Key.App, bytes, t.reject != nil && t.reject.code == events.CodeCancelled)
	return room
}

// takeRoom reports whether there is room for so many bytes of a tenant, a token, and counts them. A cancel, which would have to store
// the end of its turn, may use a part of the room that is kept free.
func (h *Handlers) takeRoom(m *message, app string, bytes int, cancels bool) (taken int64, room bool) {
	if h.Full != nil && !cancels {
		if full, _ := h.Full(); full {
			return 0, false
		}
	}
	left, spare, look := h.roomLeft()
	if look == 0 {
		return 0, true
	}
	if cancels {
		left += spare
	}
	if !h.shares.Take(app, int64(bytes), left, look, h.Now()) {
		h.logThrottled(m, slog.LevelWarn, "a tenant has used its share of the free room in the store: its new turns and messages wait; make room, or raise the limit of the store", "",
			"app", app, "left", left)
		return 0, false
	}
	return int64(bytes), true
}

// reserveMessageRoom counts the room of a new message of an agent or a user. If there is none, the message is requeued, or becomes
// a dead letter if it cannot be. It reports false for a message that has room, or that is stored and continues.
func (h *Handlers) reserveMessageRoom(m *message, key subjects.Key) (reserved int64, d inbound.Disposition, requeued bool) {
	reserved, room := h.takeRoom(m, key.App, store.TurnOverhead+len(m.Data), false)
	if room {
		return reserved, inbound.Disposition{}, false
	}
	if m.deliveries() > 1 {
		switch _, err := h.Journal.TextOf(m.Held, key); {
		case err == nil || errors.Is(err, events.ErrStateCorrupt):
			return 0, inbound.Disposition{}, false
		case !errors.Is(err, idempotency.ErrNotFound):
			return 0, h.redeliver(m, "it cannot be read whether the message is stored", err), true
		}
	}
	if d, requeued = h.requeue(m, h.roomDelay(m, fullDelay)); !requeued {
		d = h.deadLetter(m, deadletter.ReasonUndeliverable, errNoRoom)
	}
	return 0, d, true
}

// roomDelay is the delay of a message that waits for room or a place: a quarter of its age, or the shortest one.
func (h *Handlers) roomDelay(m *message, shortest time.Duration) time.Duration {
	const part = 4
	return min(max(h.age(m)/part, shortest), longestNak)
}

// returnRoom returns the room that was reserved for a turn without a new claim.
func (h *Handlers) returnRoom(t *turn, d idempotency.Decision, err error) {
	if t.reserved > 0 && (err != nil || d.Turn != nil || d.Action != idempotency.Run && d.Action != idempotency.EndTurn) {
		h.shares.Add(t.Key.App, -t.reserved, h.Now())
		t.reserved = 0
	}
}

// addStored counts bytes that are stored for a turn that was claimed, or for a message.
func (h *Handlers) addStored(app string, bytes int) {
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

// countsDeliveries reports whether the deliveries of the message of a turn count as attempts to claim it. They do not if it
// was in the stream while there was no room for it: workers requeued it.
func (h *Handlers) countsDeliveries(m *message) bool {
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
