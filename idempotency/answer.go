package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Answer decides a question: a person's answer, or the end of the time for one. (A cancel
// decides all that are open, see [Claim].)
type Answer struct {
	Key   subjects.Key
	ID    string // of the question
	Lease Lease  // the message that brings it; the lease of the turn if it was parked
	Trace string

	Outcome Outcome // Answered or Expired
	// Digest tells the content, so that the same answer sent again is accepted again. It is in a
	// header, and a secret answer has none.
	Digest string
	// Data is what the tool is handed, private. What [secrets.Keys.Seal] has sealed is erased when
	// the turn has ended, see [Journal.Erase].
	Data []byte
	// Check holds the answer against the question as it was stored: audience, deadline, schema.
	// Nothing is stored that it refuses. An expiry may have none.
	Check func(ask Record) error
	// Ack makes the public event chat.tool_call_ack of what was decided, which need not be this
	// answer.
	Ack func(decided Record) ([]byte, error)
	// Taker is asked before a parked turn is resumed, see [Claim].
	Taker Taker
}

// Verdict is what became of an [Answer].
type Verdict int

// The verdicts.
const (
	// Early: no such question is known, or not yet. Deliver the message again later, and reject
	// it after a while.
	Early Verdict = iota
	// Accepted: it decides the question.
	Accepted
	// Replayed: the same answer was accepted before, from another message. Of a secret answer that is
	// not told: anybody who may answer could try values until one is the same.
	Replayed
	// TooLate: the question was decided otherwise, see Answered.By.
	TooLate
	// Invalid: Check refused it, see Answered.Reason.
	Invalid
	// Closed: the turn ended with the question open.
	Closed
)

// String returns the name used in logs and metrics.
func (v Verdict) String() string {
	return [...]string{"early", "accepted", "replayed", "too_late", "invalid", "closed"}[v]
}

// Verdicted is the answer to an [Answer]: the verdict is for whoever sent it, the decision is
// for the message. A repeated answer also does what an accepted one does, if nobody has: the
// worker that accepted it may have died.
type Verdicted struct {
	Decision

	Verdict Verdict
	By      Outcome // how the question is decided, Open if it is not
	Reason  error   // of Invalid
}

// Misuses of [Journal.Answer].
var (
	errUnchecked = errors.New("journal: an answer without a check is not stored: set Answer.Check")
	errOutcome   = errors.New("journal: a question is decided by an answer or an expiry: set Answer.Outcome")
)

// Answer stores an answer or expiry, closes the question on the screen and brings the word to
// whoever holds the turn. The decision is Run or Conclude when the turn was parked: then this
// message is its lease.
func (j *Journal) Answer(ctx context.Context, a Answer) (Verdicted, error) {
	if a.Outcome != Answered && a.Outcome != Expired {
		return Verdicted{}, errOutcome
	}
	c := Claim{Key: a.Key, Lease: a.Lease, Trace: a.Trace, Signal: true, Ack: a.Ack, Taker: a.Taker, question: subjects.Token(a.ID)}
	t, err := Load(ctx, j.store, a.Key)
	if err != nil {
		return Verdicted{}, err
	}
	v, err := j.judge(ctx, a, &c, t)
	switch {
	case err != nil || v.Verdict == Early:
		return v, err
	case v.Verdict == Closed && t.Response != nil, v.Verdict == Invalid && a.Lease.Delivery <= 1:
		v.Decision = Decision{Action: Done, Turn: t, End: t.Response}
		return v, nil
	}
	// Only what stands wakes anybody. But any message that was delivered before may be the lease of
	// the turn, and that is not for one read to deny.
	c.mute = v.Verdict != Accepted && v.Verdict != Replayed
	v.Decision, err = j.contend(ctx, c, Hold{Key: a.Key, Nonce: NewNonce(), Trace: a.Trace}, t)
	return v, err
}

// judge stores an answer if the question is open and it fits, and says what became of it.
func (j *Journal) judge(ctx context.Context, a Answer, c *Claim, t *Turn) (Verdicted, error) {
	q := t.questions[c.question]
	if q == nil {
		q = &asked{}
	}
	switch {
	case t.Claim == nil: // what is there may be left of a former life of the key
		return Verdicted{Verdict: Early, Decision: Decision{Action: Leave, Turn: t}}, nil
	case q.answer != nil:
	case t.Response != nil:
		return Verdicted{Verdict: Closed}, nil
	case q.ask == nil:
		return Verdicted{Verdict: Early, Decision: Decision{Action: Leave, Turn: t}}, nil
	case q.ask.Err != nil:
		return Verdicted{Verdict: Closed}, nil //nolint:nilerr // an unreadable turn ends, unasked
	case a.Check == nil && a.Outcome != Expired:
		return Verdicted{}, errUnchecked
	case a.Check != nil:
		if reason := a.Check(*q.ask); reason != nil {
			return Verdicted{Verdict: Invalid, Reason: reason}, nil //nolint:nilerr // the refusal is the answer
		}
	}
	answer := Record{Data: a.Data, Meta: Meta{
		Nonce: NewNonce(), Epoch: 1, Lease: a.Lease, Fingerprint: a.Digest, Verdict: string(a.Outcome), Trace: a.Trace,
		Secret: secrecyOf(a.Data),
	}}
	if q.answer != nil {
		answer = *q.answer
	}
	if q.ack != nil {
		c.Ack = nil
	}
	decided, first, err := j.settle(ctx, c, t, c.question, answer)
	if err != nil {
		return Verdicted{}, err
	}
	v := Verdicted{Verdict: TooLate, By: Outcome(decided.Meta.Verdict)}
	switch {
	case first || decided.Meta.Lease.Same(a.Lease):
		v.Verdict = Accepted
	case decided.Meta.Fingerprint == a.Digest && v.By == a.Outcome && decided.Meta.Secret == Plain && secrecyOf(a.Data) == Plain:
		v.Verdict = Replayed
	}
	return v, nil
}

// settle stores how a question of a turn is decided, unless it is already, and the ack that follows
// from it. It returns the record that counts, and whether it is the given one.
func (j *Journal) settle(ctx context.Context, c *Claim, t *Turn, id string, answer Record) (decided Record, first bool, err error) {
	if answer.Seq == 0 {
		answer.Key = c.Key.Private(events.RecordAnswer, id)
		_, rival, err := j.create(ctx, answer, lifeOf(t.Claim))
		if err != nil {
			return Record{}, false, err
		}
		if first = rival == nil; !first {
			answer = *rival
		}
	}
	if c.Ack == nil || answer.Err != nil {
		return answer, first, nil //nolint:nilerr // nobody is told of an answer that cannot be read
	}
	event, err := c.Ack(answer)
	if err != nil {
		return Record{}, false, err
	}
	_, _, err = j.create(ctx, Record{
		Key: c.Key.Public(events.RecordAck, id), Data: event,
		Meta: Meta{Nonce: NewNonce(), Epoch: 1, Verdict: answer.Meta.Verdict, Trace: answer.Meta.Trace},
	}, lifeOf(t.Claim))
	return answer, first, err
}
