package handlers

import (
	"time"

	"github.com/oneturn/oneturn/internal/mutant"
)

// fullFirst is how soon a new turn that no worker has claimed comes again while the store is nearly
// full, at first.
const fullFirst = 3 * time.Second

// whileFull gives a turn that no worker has claimed back while the store is nearly full. What is left
// of the store is for what ends open turns: responses, answers, expiries, cancels and resumes.
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
	return h.giveBack(t.m, min(max(h.age(t.m)/part, fullFirst), longestPlace)), true
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
