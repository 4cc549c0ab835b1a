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

// A parked turn is a record: no goroutine waits for it and no message is held. The owner that parks and the answer that wakes
// it create the same key, park.<epoch>, so exactly one of them is first: either the owner has parked, and the answer
// continues the turn, or the owner was woken, and reads the answer. An owner that was woken for another question and has to
// wait again cannot park its epoch any more. It continues as the next epoch
// (docs/journal.md#epochs-and-takeovers).

// Park releases a turn until one of its open questions is decided or the turn is cancelled. If it returns true, the turn is
// parked with the given state, JSON, which the next run finds in [Turn.State]: the message is acknowledged and the run ends.
// If it returns false, a question was decided in the meantime: the run reads the replies again and continues.
//
// If the epoch of the owner was woken, the questions are read. If none that it waits for is decided, it becomes the owner of
// the next epoch, under the same lease, and h is the hold of that. The questions are read once more before that epoch is
// parked: an answer that was stored after the first read, but before the next epoch began, found the epoch woken already
// and creates nothing that would keep the next one from parking.
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

// decidedSince is anyDecided by a read that shows the takeover record of the hold's epoch, and so every answer that was stored
// before that epoch began. Open are tokens.
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

// parkedOn reports whether a park record waits for a question. An unreadable one waits for all. That an answer was taken does
// not mean that the run that parked has it: an earlier run, which had lost the turn and did not know it, may have taken it.
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

// wakeStored reports whether what continues a parked turn is stored: a decision of a question for which it waits, or a
// cancel.
func (t *Turn) wakeStored() bool {
	park := t.newestPark()
	for id, q := range t.questions {
		if park != nil && q.Answer != nil && parkedOn(park, id) {
			return true
		}
	}
	return t.Cancel != nil
}

// Parked reports whether the owner of the newest epoch has parked the turn and nothing that resumes it is stored. A turn
// whose answer or cancel is stored does not count: if the message that carried it is lost, a sweep has to resume the turn.
func (t *Turn) Parked() bool {
	park := t.newestPark()
	return park != nil && park.Meta.Outcome == ParkParked && !t.wakeStored()
}
