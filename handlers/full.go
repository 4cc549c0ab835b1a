package handlers

import (
	"errors"
	"time"

	"github.com/oneturn/oneturn/internal/mutant"
)

// fullFirst is how soon a new turn that no worker has claimed comes again while the store is nearly
// full, at first.
const fullFirst = 3 * time.Second

// errFull says why a turn is not claimed while the store is nearly full.
var errFull = errors.New("the store is nearly full, and as many turns of the tenant wait for room as may: make room, and publish it again (turnctl dead redrive)")

// whileFull gives a turn that no worker has claimed back while the store is nearly full. What is left
// of the store is for what ends open turns: responses, answers, expiries, cancels and resumes. So one that can
// neither keep a place nor be put aside becomes a dead letter, which has a share of the store, and not
// a rejected turn, which has none.
func (h *Handlers) whileFull(t *turn) (Disposition, bool) {
	if h.Full == nil {
		return Disposition{}, false
	}
	if full, _ := h.Full(); !full || mutant.Planted(mutant.FullStoreClaims) {
		return Disposition{}, false
	}
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.unclaimed(t, err), true
	case claimed:
		return Disposition{}, false
	}
	const part = 4
	t.m.turns = t.keys()
	if d, back := h.giveBack(t.m, min(max(h.age(t.m)/part, fullFirst), longestPlace)); back {
		return d, true
	}
	return h.dead(t.m, reasonUndeliverable, errFull), true
}

// counted reports whether the deliveries of a message of a turn count as attempts to claim it. They
// do not when it was in the stream while the store was nearly full: workers gave it back.
func (h *Handlers) counted(m *Message) bool {
	if h.Full == nil {
		return true
	}
	full, last := h.Full()
	return !full && (last.IsZero() || h.age(m) < h.Now().Sub(last))
}
