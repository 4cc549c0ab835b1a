package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// An answer may arrive while the owner waits in memory, while the turn is parked, or while another worker takes it over. The
// order of the steps makes each case safe: first the answer is stored, then the ack event that closes the question is
// published, then the owner is signalled. The park record of the newest epoch decides how: if it can be created as woken,
// the owner holds the turn and reads the answer; if the owner has created it as parked, this message becomes the lease
// of the turn and the tool is entered again. A cancel takes the same way (docs/journal.md#rule-17).

// Answer decides a question: the answer of a person, or an expiry. (A cancel decides all open questions, see [Claim].)
type Answer struct {
	Key   subjects.Key // of the call that asks
	ID    string       // of the question
	Lease Lease        // the message of the answer; becomes the lease of the turn if it is parked
	Trace string

	Outcome Outcome // Answered or Expired
	// Digest is a hash of the content, so that the same answer sent again is accepted again. It is stored in the header
	// for fingerprints; a secret answer has none.
	Digest string
	// Data is passed to the tool. It is private. Data that [secrets.Keys.Seal] has sealed is erased after the end
	// of the turn, see [Journal.Erase].
	Data []byte
	// Check validates the answer against the stored question: audience, deadline, schema. A refused answer is not
	// stored. An expiry needs no check.
	Check func(ask Record) error
	// Ack returns the public event chat.tool_call_ack for the answer that counts, which need not be this one.
	Ack func(decided Record) ([]byte, error)
	// NewOwner is asked before a parked turn is continued, see [Claim].
	NewOwner NewOwner
}

// AnswerStatus is the result of an [Answer].
type AnswerStatus int

// The results.
const (
	// Early: the question is not known, or not yet. The message is delivered again later, and rejected after a while.
	Early AnswerStatus = iota
	// Accepted: it decides the question.
	Accepted
	// Replayed: the same answer was accepted before, from another message. It is not reported for secret answers: a
	// sender could otherwise guess the value.
	Replayed
	// TooLate: another answer, an expiry or a cancel has decided the question, see AnswerDecision.By.
	TooLate
	// Invalid: Check refused it, see AnswerDecision.Reason.
	Invalid
	// Closed: the turn, or the step that asks, ended with the question open, or the turn will, since the question cannot be read.
	Closed
)

// String returns the name used in logs and metrics.
func (v AnswerStatus) String() string {
	return [...]string{"early", "accepted", "replayed", "too_late", "invalid", "closed"}[v]
}

// AnswerDecision is the decision for an [Answer]: the status is for the sender, the embedded decision for the message. A
// repeated answer does what remains to be done for the accepted one, because the worker that accepted it may have died.
type AnswerDecision struct {
	Decision

	Status AnswerStatus
	By     Outcome // how the question is decided, Open if it is not
	Seq    uint64  // of the record that decides it, 0 if none does
	Reason error   // of Invalid
}

// noOwner is the epoch in records that no owner writes, such as answers: the header has to be a number from 1.
const noOwner = 1

// Misuses of [Journal.Answer].
var (
	errUnchecked = errors.New("journal: an answer without a check is not stored: set Answer.Check")
	errOutcome   = errors.New("journal: a question is decided by an answer or an expiry: set Answer.Outcome")
)

// Answer stores an answer or expiry, publishes the ack that closes the question, and signals the owner of the turn. The
// decision is Run when the turn was parked, or was taken over by a later delivery of this message: then the message is the
// lease. It is EndTurn then, too, or when the turn cannot be read.
func (j *Journal) Answer(ctx context.Context, a Answer) (AnswerDecision, error) {
	if a.Outcome != Answered && a.Outcome != Expired {
		return AnswerDecision{}, errOutcome
	}
	c := Claim{
		Key: a.Key.OfTurn(), Lease: a.Lease, Trace: a.Trace, Signal: true, Ack: a.Ack, NewOwner: a.NewOwner,
		question: QuestionRef{Call: a.Key.Call, Token: subjects.Token(a.ID)},
	}
	t, err := Load(ctx, j.store, c.Key)
	if err != nil {
		return AnswerDecision{}, err
	}
	v, err := j.decide(ctx, a, &c, t)
	switch {
	case err != nil || v.Status == Early:
		return v, err
	case v.Status == Closed && t.Response != nil: // the turn has ended: nothing is left to do
		v.Decision = Decision{Action: Done, Turn: t, End: t.Response}
		return v, nil
	case v.Status == Invalid && a.Lease.Delivery <= 1: // no earlier delivery was accepted, so it cannot be the lease of the turn
		v.Decision = Decision{Action: Done, Turn: t, End: t.Response}
		return v, nil
	}
	// Only an answer that counts signals the owner. But a message that does not count may be the lease of the turn all the
	// same: an earlier delivery of it may have been accepted, have continued the turn and died. The read may be too old to
	// show that, so contend reads the turn again; it takes the turn over if the message is its lease.
	c.noSignal = v.Status != Accepted && v.Status != Replayed
	v.Decision, err = j.contend(ctx, c, Hold{Key: c.Key, Nonce: NewNonce(), Trace: a.Trace}, t)
	return v, err
}

// decide stores an answer if the question is open and the answer is valid.
func (j *Journal) decide(ctx context.Context, a Answer, c *Claim, t *Turn) (AnswerDecision, error) {
	q := t.questionOf(c.question)
	if q == nil {
		q = &QuestionState{}
	}
	switch {
	case t.Claim == nil: // stored records may be of an earlier generation
		return AnswerDecision{Status: Early, Decision: Decision{Action: Leave, Turn: t}}, nil
	case q.Answer != nil:
	case t.Response != nil, t.CallEnded(c.Key.WithCall(c.question.Call)):
		return AnswerDecision{Status: Closed}, nil
	case q.Ask == nil:
		return AnswerDecision{Status: Early, Decision: Decision{Action: Leave, Turn: t}}, nil
	case q.Ask.Err != nil:
		return AnswerDecision{Status: Closed}, nil //nolint:nilerr // a turn with an unreadable record ends anyway
	case a.Check == nil && a.Outcome != Expired:
		return AnswerDecision{}, errUnchecked
	case a.Check != nil:
		if reason := a.Check(*q.Ask); reason != nil {
			return AnswerDecision{Status: Invalid, Reason: reason}, nil //nolint:nilerr // reported as the reason
		}
	}
	answer := Record{Data: a.Data, Meta: Meta{
		Nonce: NewNonce(), Epoch: noOwner, Lease: a.Lease, Fingerprint: a.Digest, Outcome: string(a.Outcome), Trace: a.Trace,
		Secret: secrecyOf(a.Data),
	}}
	if q.Answer != nil {
		answer = *q.Answer
	}
	if q.Ack != nil {
		c.Ack = nil
	}
	decided, first, err := j.settle(ctx, c, t, c.question, answer)
	if err != nil {
		return AnswerDecision{}, err
	}
	if !t.oversized { // such a turn only ends, whichever epoch is its newest, and the read of it need not show the answer
		c.since = decided.Seq
	}
	v := AnswerDecision{Status: TooLate, By: Outcome(decided.Meta.Outcome), Seq: decided.Seq}
	switch {
	case first || decided.Meta.Lease.Same(a.Lease):
		v.Status = Accepted
	case decided.Meta.Fingerprint == a.Digest && v.By == a.Outcome && decided.Meta.Secret == Plain && secrecyOf(a.Data) == Plain:
		v.Status = Replayed
	}
	return v, nil
}

// settle stores how a question is decided, unless it is decided already, and then its ack. It returns the record that
// counts, and whether it is the given one.
func (j *Journal) settle(ctx context.Context, c *Claim, t *Turn, q QuestionRef, answer Record) (decided Record, first bool, err error) {
	asks := c.Key.WithCall(q.Call)
	if answer.Seq == 0 {
		answer.Key = asks.Private(events.RecordAnswer, q.Token)
		seq, rival, err := j.create(ctx, answer, generationOf(t.Claim))
		switch {
		case err != nil:
			return Record{}, false, err
		case rival != nil:
			answer = *rival
		default:
			answer.Seq, first = seq, true
		}
	}
	if c.Ack == nil || answer.Err != nil {
		return answer, first, nil //nolint:nilerr // an unreadable answer gets no ack
	}
	event, err := c.Ack(answer)
	if err != nil {
		return Record{}, false, err
	}
	_, _, err = j.create(ctx, Record{
		Key: asks.Public(events.RecordAck, q.Token), Data: event,
		Meta: Meta{Nonce: NewNonce(), Epoch: noOwner, Outcome: answer.Meta.Outcome, Trace: answer.Meta.Trace},
	}, generationOf(t.Claim))
	return answer, first, err
}

// signal signals the owner of the turn after an answer, expiry or cancel was stored. The park record of the newest epoch
// decides how: an owner that holds the turn is woken, a turn that is parked is continued. T shows the answer (Claim.since)
// or cancel, so the newest epoch is one of t, or it begins later and its owner reads the answer when it begins.
func (j *Journal) signal(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
	if c.noSignal {
		return Decision{Action: Done, Turn: t}, false, nil
	}
	if c.cancels() {
		if t.Cancel == nil {
			// [Journal.Cancel] came before, but its record does not count for this turn: it is of an earlier generation, or
			// the read is stale. The next delivery of the message calls both again.
			return Decision{Action: Leave, Turn: t}, false, nil
		}
		if err := j.closeQuestions(ctx, &c, t, t.Questions()); err != nil {
			return Decision{}, false, err
		}
	}
	for {
		park, err := j.createWoken(ctx, hold, t)
		switch {
		case err != nil:
			return Decision{}, false, err
		case park.Meta.Outcome == ParkWoken:
			return Decision{Action: Signalled, Turn: t}, false, nil
		case park.Meta.Outcome == ParkParked && !c.cancels() && !parkedOn(&park, c.question):
			return Decision{Action: Done, Turn: t}, false, nil // a repeated answer: the run had it before it parked
		case park.Meta.Outcome == ParkParked:
			effect, known := c.effectToday(t, hold.Effect)
			if !known {
				return Decision{Action: Requeue, Turn: t}, false, nil
			}
			hold.Effect = effect
			return j.beginEpoch(ctx, c, hold, t)
		}
		// Sealed: another worker takes the turn over. The takeover record of the next epoch may not be stored yet, but
		// its owner is the next one that could park the turn without the answer. So the next epoch is marked as woken,
		// possibly before it begins: its owner then cannot park it, and reads the questions. The loop ends at the first epoch
		// that is not sealed, at the latest at one that has not begun.
		hold.Epoch++
	}
}

// createWoken returns the park record of the epoch of hold: the one that t shows, since it never changes, else the one that
// stands after it was created as woken.
func (j *Journal) createWoken(ctx context.Context, hold Hold, t *Turn) (Record, error) {
	if park := t.newestPark(); park != nil && park.Err == nil && hold.Epoch == t.Epoch {
		return *park, nil
	}
	return j.endEpoch(ctx, hold, ParkWoken)
}
