package sim

import (
	"slices"
	"time"

	"github.com/oneturn/oneturn/subjects"
)

// retention is how long the simulated journal keeps records, or a little more.
const retention = 10 * 24 * time.Hour

// liveAgain begins the second half of some schedules, once all turns have ended: the records of turns
// have expired one by one, the claim first, and the same keys are published again while the rest still
// stands. Workers that live on remember what they do. It reports whether it did.
func (w *world) liveAgain() bool {
	holds := func(p *process) bool { return len(p.threads) > 0 }
	if w.begun > 0 || !w.chance(1, 3) || slices.ContainsFunc(w.processes, holds) {
		return false
	}
	w.check()
	w.tracef("the claims of turns expire, and their keys are used again")
	w.pass(retention)
	for i, t := range w.turns {
		if h := w.history(t); h.claim != nil && t.by == nil && w.chance(3, 4) {
			w.former = append(w.former, t)
			w.turns[i] = w.newGeneration(t)
			w.want(w.turns[i])
		}
	}
	w.begun, w.healed = w.steps, false
	w.faults.budget = w.rng.IntN(8)
	return len(w.violations) == 0
}

// newGeneration is a new turn under the key of one whose claim has expired, and perhaps more of its records.
func (w *world) newGeneration(t *turn) *turn {
	h := w.history(t)
	last := h.claim.Seq + w.rng.Uint64N(uint64(len(w.store.log))-h.claim.Seq+1)
	if h.cancel != nil && h.cancel.Meta.Claim == 0 && h.cancel.Seq > h.responses[0].Seq {
		last = max(last, h.cancel.Seq) // it names no claim, and may as well be about the new turn
	}
	w.store.expire(t.key, last)
	t.until = uint64(len(w.store.log))
	return &turn{id: t.id, key: t.key, agent: t.agent, model: t.model, pool: t.pool, script: t.script, program: t.program, calls: t.calls, from: t.until}
}

// expire removes the records of a turn up to a sequence.
func (s *store) expire(key subjects.Key, last uint64) {
	for i := range s.log {
		r := &s.log[i]
		if k, ok := subjects.ParseKey(r.Key); ok && k.OfTurn() == key && r.Seq <= last && s.keys[r.Key] == r.Seq {
			s.w.tracef("  journal %d expires: %s", r.Seq, short(r.Key))
			s.expired[r.Seq] = true
			delete(s.keys, r.Key)
		}
	}
}

// had reports whether a record was stored during the generation of the turn.
func (t *turn) had(seq uint64) bool { return seq > t.from && (t.until == 0 || seq <= t.until) }
