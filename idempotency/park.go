package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A parked turn is a record: no goroutine waits for it and no message is held. Park and the wake of an answer create the
// same key, park.<epoch>, so exactly one of them is first: either the owner has parked, and the answer resumes the turn, or
// the owner was woken, and reads the answer.

// Park releases a turn until one of its open questions is decided or the turn is cancelled. If it returns true, the turn is
// parked with the given state, JSON, which a resume finds in [Turn.State]: the message is acknowledged and the run ends. If
// it returns false, a question was decided in the meantime: the run reads the replies again and continues.
//
// An owner that was woken and has to wait again continues as the next epoch, under the same lease, and reads the questions
// again before it parks that epoch: an answer that was stored before the next epoch began has woken the previous epoch and
// wakes no other. H is the new epoch afterwards.
//
// Open has to name all questions that the tool waits for: nothing else wakes the turn. A tool with effect unsafe is never
// parked; it waits in memory. For errors see [Journal.Ask].
func (j *Journal) Park(ctx context.Context, h *Hold, open []string, state json.RawMessage) (parked bool, err error) {
	if !reenterable(h.Effect) {
		return false, fmt.Errorf("journal: park %s: a tool with effect %q cannot be entered again: wait in memory", h.Key, h.Effect)
	}
	if len(open) == 0 {
		return false, fmt.Errorf("journal: park %s: no question is open, so nothing would wake the turn", h.Key)
	}
	p := parking{State: state}
	for _, id := range open {
		p.Open = append(p.Open, subjects.Token(id))
	}
	data, err := json.Marshal(p)
	if err != nil {
		return false, fmt.Errorf("journal: park %s: the state is not valid JSON: %w", h.Key, err)
	}
	for {
		meta := h.meta()
		meta.Outcome = ParkParked
		_, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordPark, strconv.Itoa(h.Epoch)), Meta: meta, Data: data}, h.Claim)
		switch {
		case err != nil:
			return false, err
		case rival == nil:
			return true, nil
		case rival.Err != nil || rival.Meta.Outcome != ParkWoken: // sealed: the turn is taken over
			return false, ErrLost
		}
		if decided, err := j.anyDecided(ctx, *h, open); decided || err != nil {
			return false, err
		}
		switch won, err := j.own(ctx, Claim{Key: h.Key, Lease: h.Lease, Trace: h.Trace}, h); {
		case err != nil:
			return false, err
		case !won:
			return false, ErrLost
		}
		if decided, err := j.decidedSince(ctx, *h, p.Open); decided || err != nil {
			return false, err
		}
	}
}

// anyDecided reads whether one of the questions is decided.
func (j *Journal) anyDecided(ctx context.Context, h Hold, open []string) (bool, error) {
	replies, err := j.replies(ctx, h, open...)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(replies, func(r Reply) bool { return r.Outcome != Open }), nil
}

// decidedSince is anyDecided by a read that shows the epoch of the hold: an answer that was stored before it does not wake
// that epoch. Open are tokens.
func (j *Journal) decidedSince(ctx context.Context, h Hold, open []string) (bool, error) {
	t, err := j.reload(ctx, h)
	switch {
	case err != nil:
		return false, err
	case t.Response != nil:
		return false, ErrLost
	case t.Cancel != nil:
		return false, errCancelled
	}
	for _, token := range open {
		q := t.questions[token]
		if q == nil {
			continue
		}
		if reply, err := replyOf(q.Answer); err != nil || reply.Outcome != Open {
			return true, err
		}
	}
	return false, nil
}

// parking is the data of a park record of a parked turn.
type parking struct {
	Open  []string        `json:"open"`            // tokens of the questions that its owner waited for
	State json.RawMessage `json:"state,omitempty"` // what it needs to continue
}

// parkedOn reports whether a park record waits for a question. An unreadable one waits for all. The record of the owner
// counts, not whether the answer was taken: a run that had lost the turn may have taken it.
func parkedOn(park *Record, question string) bool {
	var p parking
	return json.Unmarshal(park.Data, &p) != nil || slices.Contains(p.Open, question)
}

// State returns the state with which the turn was last parked, from which a run continues. It is nil for a turn that was
// never parked.
func (t *Turn) State() json.RawMessage {
	var newest *Record
	for _, r := range t.parks {
		if r.Meta.Outcome == ParkParked && (newest == nil || r.Meta.Epoch > newest.Meta.Epoch) {
			newest = r
		}
	}
	var p parking
	if newest == nil || json.Unmarshal(newest.Data, &p) != nil {
		return nil
	}
	return p.State
}

// WasParked reports whether the owner of an epoch has parked the turn.
func (t *Turn) WasParked(epoch int) bool {
	park := t.park(epoch)
	return park != nil && park.Err == nil && park.Meta.Outcome == ParkParked
}

// newestPark returns how the newest epoch ended, nil while it has not.
func (t *Turn) newestPark() *Record { return t.park(t.Epoch) }

// park returns how an epoch ended, nil if it has not.
func (t *Turn) park(epoch int) *Record {
	key := t.Key.Private(events.RecordPark, strconv.Itoa(epoch))
	for _, r := range t.parks {
		if r.Key == key {
			return r
		}
	}
	return nil
}

// called reports whether a parked turn has to be resumed: one of its questions is decided, or it is cancelled.
func (t *Turn) called() bool {
	park := t.newestPark()
	for id, q := range t.questions {
		if park != nil && q.Answer != nil && parkedOn(park, id) {
			return true
		}
	}
	return t.Cancel != nil
}

// replays reports whether a tool with effect replay may be entered by the run of a nonce: it waits for an answer, and no
// code after an answer was reached that would run again.
func (t *Turn) replays(nonce string) bool {
	open := false
	for _, q := range t.questions {
		switch {
		case q.Taken == nil:
			open = open || q.Ask != nil
		case t.passed(q.Taken, nonce):
			return false
		}
	}
	return open
}

// passed reports whether the code after an answer that another run has taken may have run and must not run again. It may run
// again if it is code before an open question: one that was asked later, or one that was open when the run that took the
// answer parked.
func (t *Turn) passed(taken *Record, nonce string) bool {
	parked := false
	for _, r := range t.parks {
		parked = parked || r.Meta.Outcome == ParkParked && r.Meta.Nonce == taken.Meta.Nonce && r.Seq > taken.Seq
	}
	for _, q := range t.questions {
		open := q.Ask != nil && (q.Taken == nil || q.Taken.Meta.Nonce == nonce)
		if open && (parked || q.Ask.Seq > taken.Seq) {
			return false
		}
	}
	return true
}

// Parked reports whether the owner of the newest epoch has parked the turn and nothing that resumes it is stored. A turn
// whose answer or cancel is stored does not count: if the message of that is lost, the turn has to be resumed by a sweep.
func (t *Turn) Parked() bool {
	park := t.newestPark()
	return park != nil && park.Meta.Outcome == ParkParked && !t.called()
}
