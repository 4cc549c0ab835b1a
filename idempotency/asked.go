package idempotency

import "github.com/oneturn/oneturn/internal/mutant"

// asked is what the journal holds of one question.
type asked struct {
	ask, answer, ack, taken *Record
}

func (q *asked) note(kind string, r *Record) {
	switch kind {
	case kindAsk:
		q.ask = r
	case kindAnswer:
		q.answer = r
	case kindAck:
		q.ack = r
	case kindTaken:
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

// State returns what the newest park record holds: all that its owner needed to go on later.
// It is nil for a turn that was never parked.
func (t *Turn) State() []byte {
	var newest *Record
	for _, r := range t.parks {
		if r.Meta.Verdict == parkParked && (newest == nil || r.Meta.Epoch > newest.Meta.Epoch) {
			newest = r
		}
	}
	if newest == nil {
		return nil
	}
	return newest.Data
}

// called reports whether something was stored for the turn that no run has seen: a decided
// question that nobody took, or the wish that it end.
func (t *Turn) called() bool {
	for _, q := range t.questions {
		if q.answer != nil && q.taken == nil {
			return true
		}
	}
	return t.Cancel != nil
}

// sealed counts the epochs that were taken from an owner who let its lease lapse.
func (t *Turn) sealed() int {
	n := 0
	for _, r := range t.parks {
		if r.Meta.Verdict == parkSealed {
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
		case t.passed(q.taken, nonce) && !mutant.Planted(mutant.TakeWithoutEpoch):
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
		parked = parked || r.Meta.Verdict == parkParked && r.Meta.Nonce == taken.Meta.Nonce && r.Seq > taken.Seq
	}
	for _, q := range t.questions {
		open := q.ask != nil && (q.taken == nil || q.taken.Meta.Nonce == nonce)
		if open && (parked || q.ask.Seq > taken.Seq) {
			return false
		}
	}
	return true
}
