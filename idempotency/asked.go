package idempotency

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
)

// asked is what the journal holds of one question.
type asked struct {
	ask, answer, ack, taken *Record
}

func (q *asked) note(kind string, r *Record) {
	switch kind {
	case events.RecordAsk:
		q.ask = r
	case events.RecordAnswer:
		q.answer = r
	case events.RecordAck:
		q.ack = r
	case events.RecordTaken:
		q.taken = r
	}
}

func (t *Turn) question(id string) *asked {
	q := t.questions[id]
	if q == nil {
		if t.questions == nil {
			t.questions = map[string]*asked{}
		}
		q = &asked{}
		t.questions[id] = q
	}
	return q
}

// parking is what a park record says about a turn that was let go.
type parking struct {
	Open  []string        `json:"open"`            // tokens of the questions that its owner waited for
	State json.RawMessage `json:"state,omitempty"` // what it needs to go on
}

// waits reports whether a park record waits for a question. One that cannot be read waits for
// all. What counts is what its owner knew, not whether the answer was taken: a run that had lost
// the turn may have done that.
func waits(park *Record, question string) bool {
	var p parking
	return json.Unmarshal(park.Data, &p) != nil || slices.Contains(p.Open, question)
}

// State returns the state with which the turn was parked last: all that its owner needed to go
// on later. It is nil for a turn that was never parked.
func (t *Turn) State() json.RawMessage {
	var newest *Record
	for _, r := range t.parks {
		if r.Meta.Verdict == ParkParked && (newest == nil || r.Meta.Epoch > newest.Meta.Epoch) {
			newest = r
		}
	}
	var p parking
	if newest == nil || json.Unmarshal(newest.Data, &p) != nil {
		return nil
	}
	return p.State
}

// WasParked reports whether the owner of an epoch let the turn go until somebody answers.
func (t *Turn) WasParked(epoch int) bool {
	park := t.park(epoch)
	return park != nil && park.Err == nil && park.Meta.Verdict == ParkParked
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

// called reports whether something is stored that a parked turn waits for: a decided question,
// or the wish that it end.
func (t *Turn) called() bool {
	park := t.newestPark()
	for id, q := range t.questions {
		if park != nil && q.answer != nil && waits(park, id) {
			return true
		}
	}
	return t.Cancel != nil
}

// asks reports whether a question of the turn is still on the screen.
func (t *Turn) asks() bool {
	for _, q := range t.questions {
		if q.ask != nil && q.ack == nil {
			return true
		}
	}
	return false
}

// sealed counts the epochs that were taken from an owner who let its lease lapse.
func (t *Turn) sealed() int {
	n := 0
	for _, r := range t.parks {
		if r.Meta.Verdict == ParkSealed {
			n++
		}
	}
	return n
}

// replays reports whether a tool with effect replay may be entered by the run of a nonce: it
// waits for an answer, and no code behind an answer was reached that would run again.
func (t *Turn) replays(nonce string) bool {
	open := false
	for _, q := range t.questions {
		switch {
		case q.taken == nil:
			open = open || q.ask != nil
		case t.passed(q.taken, nonce):
			return false
		}
	}
	return open
}

// passed reports whether the code behind an answer that another run has taken may have run,
// and must not run again. It may run again while it is code before an open question: one that
// was asked later, or any that was open when the run that took the answer parked.
func (t *Turn) passed(taken *Record, nonce string) bool {
	parked := false
	for _, r := range t.parks {
		parked = parked || r.Meta.Verdict == ParkParked && r.Meta.Nonce == taken.Meta.Nonce && r.Seq > taken.Seq
	}
	for _, q := range t.questions {
		open := q.ask != nil && (q.taken == nil || q.taken.Meta.Nonce == nonce)
		if open && (parked || q.ask.Seq > taken.Seq) {
			return false
		}
	}
	return true
}
