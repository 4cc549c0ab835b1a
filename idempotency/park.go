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

// A parked turn is a record: no goroutine waits for it and no message is held. The owner that parks and the answer that
// signals it create the same key, park.<epoch>, so exactly one of them is first: either the owner has parked, and the answer
// continues the turn, or the owner is woken, and reads the answer. An owner that was woken for another question and has to
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
// Open has to name all questions that the calls of the turn wait for: nothing else but a cancel continues the turn. A tool
// with effect unsafe is never parked; it waits in memory. To call Park for one, or without a question or with a state that is
// not JSON, is an error of the caller, and nothing is stored. For the other errors see [Journal.Ask].
func (j *Journal) Park(ctx context.Context, h *Hold, open []QuestionRef, state json.RawMessage) (parked bool, err error) {
	if !reenterable(h.Effect) {
		return false, fmt.Errorf("journal: park %s: a tool with effect %q cannot be entered again: wait in memory", h.Key, h.Effect)
	}
	if len(open) == 0 {
		return false, fmt.Errorf("journal: park %s: no question is open, so nothing would continue the turn", h.Key)
	}
	p := parking{State: state}
	for _, q := range open {
		p.Open = append(p.Open, q.String())
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
		case rival.Err != nil || rival.Meta.Outcome != ParkWoken: // sealed by a takeover, or unreadable
			return false, ErrLost
		}
		// This costs less than to read the turn, but may miss an answer that was stored just now.
		if decided, err := j.Decided(ctx, *h, open...); decided || err != nil {
			return false, err
		}
		switch won, err := j.own(ctx, Claim{Key: h.Key, Lease: h.Lease, Trace: h.Trace}, h); {
		case err != nil:
			return false, err
		case !won:
			return false, ErrLost
		}
		if decided, err := j.decidedBeforeEpoch(ctx, *h, open); decided || err != nil {
			return false, err
		}
	}
}

// decidedBeforeEpoch reports whether one of the questions is decided, by a read of the turn that shows the takeover record of the hold's epoch, and so every
// answer that was stored before that epoch began.
func (j *Journal) decidedBeforeEpoch(ctx context.Context, h Hold, open []QuestionRef) (bool, error) {
	t, err := j.reload(ctx, h)
	switch {
	case err != nil:
		return false, err
	case t.Response != nil:
		return false, ErrLost
	case t.Cancel != nil:
		return false, errCancelled
	}
	for _, asked := range open {
		q := t.questionOf(asked)
		if q == nil {
			continue
		}
		if reply, err := replyOf(q.Answer); err != nil || reply.Outcome != Open {
			return true, j.closedBy(ctx, h, asked.Call, err)
		}
	}
	return false, nil
}

// QuestionRef names a question of a turn.
type QuestionRef struct {
	Call  string // token of the call that asks it
	Token string // of its id
}

// AskedBy returns the references to questions of a call, by their ids.
func AskedBy(call subjects.Key, ids ...string) []QuestionRef {
	refs := make([]QuestionRef, len(ids))
	for i, id := range ids {
		refs[i] = QuestionRef{Call: call.Call, Token: subjects.Token(id)}
	}
	return refs
}

// String is the form in park records: the token of the id alone for a question of the turn's own call.
func (q QuestionRef) String() string {
	if q.Call == subjects.SingleCall {
		return q.Token
	}
	return q.Call + "." + q.Token
}

// questionOf returns the state of a question, nil if the turn has no record of it.
func (t *Turn) questionOf(q QuestionRef) *QuestionState {
	if c := t.CallOf(t.Key.WithCall(q.Call)); c != nil {
		return c.questions[q.Token]
	}
	return nil
}

// parking is the data of a park record of a parked turn.
type parking struct {
	Open  []string        `json:"open"`            // the questions that its owner waited for, in the form of QuestionRef
	State json.RawMessage `json:"state,omitempty"` // what it needs to continue
}

// parkedOn reports whether the owner that created a park record waits for a question. An
// unreadable record waits for all. The record decides, and not whether the answer has a taken record: that may have been created
// by an earlier run, which had lost the turn and did not know it, and then the run that parked does not have the answer.
func parkedOn(park *Record, q QuestionRef) bool {
	var p parking
	return json.Unmarshal(park.Data, &p) != nil || slices.Contains(p.Open, q.String())
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

// WasParked reports whether the owner of an epoch has parked the turn. An unreadable park record does not count.
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

// signalStored reports whether a record is stored whose writer signals the owner: a decision of a question for which the turn
// is parked, or a cancel. Either continues the turn.
func (t *Turn) signalStored() bool {
	stored := t.Cancel != nil
	if park := t.newestPark(); park != nil {
		t.everyCall(func(c *Call) {
			for token, q := range c.questions {
				stored = stored || q.Answer != nil && parkedOn(park, QuestionRef{Call: c.Key.Call, Token: token})
			}
		})
	}
	return stored
}

// Parked reports whether the owner of the newest epoch has parked the turn and nothing that continues it is stored. A turn
// whose answer or cancel is stored does not count: if the message that carried it is lost, a sweep has to resume the turn. Of a
// turn with an unreadable record, which is not parked but has to be ended, the result means nothing: check [Turn.Corrupt] first.
func (t *Turn) Parked() bool {
	park := t.newestPark()
	return park != nil && park.Meta.Outcome == ParkParked && !t.signalStored()
}
