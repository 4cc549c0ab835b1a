package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A message claims its turn by creating the record tool_call (docs/journal.md#rule-1). The worker whose create succeeds owns
// the turn. For all others the create is refused, and a read of the turn decides what to do with their message: contend has
// all cases (docs/journal.md#rule-2).

// Claim is the request of a message for a turn.
type Claim struct {
	Key   subjects.Key
	Lease Lease  // the message
	Event []byte // the tool_call event
	// Signal marks a message that is not the turn itself but an answer, expiry or cancel: it is never a duplicate of
	// the turn's message.
	Signal bool

	Effect      string // unsafe, replay, keyed, idempotent, none
	Digest      string
	Fingerprint string
	RejectCode  string // code of a turn that fails before its tool, "" for one that may run
	Trace       string

	// NewOwner decides before a turn is taken over. Nil takes over by the claim alone.
	NewOwner NewOwner

	// Ack returns the public event that closes a question; a cancel closes all open ones. See [Answer].
	Ack func(decided Record) ([]byte, error)

	question string // of an answer or expiry
	since    uint64 // sequence of the record that decides it: a read without that is stale
	noWake   bool   // it decided nothing, so it wakes no owner
}

// Action is what a worker has to do with the message it claimed for.
type Action int

// The actions. A read may be too old: with Leave, Duplicate, Signalled and Requeue the message or another one decides later,
// Done and Conflict depend on a record that never changes, and Run and EndTurn are decided again by what they create.
const (
	// Leave: neither acknowledge nor nak; the message is redelivered when its lease lapses.
	Leave Action = iota
	// Run: this delivery owns the turn and enters the tool.
	Run
	// EndTurn: store the response that Code calls for, without entering the tool.
	EndTurn
	// Done: the turn has its response, or is parked; acknowledge.
	Done
	// Duplicate: another message is the lease of the turn and will end it; acknowledge. The journal does not check that
	// the other message is still in the stream: a sweep finds a turn whose lease is gone.
	Duplicate
	// Conflict: the key was claimed with other data; this data is never run.
	Conflict
	// Signalled: the owner holds the turn in memory and was notified; acknowledge.
	Signalled
	// Requeue: only a worker that knows the workflow of the turn can continue it: deliver the message again after a
	// delay. Nothing was stored.
	Requeue
)

// String returns the name used in logs.
func (a Action) String() string {
	return [...]string{"leave", "run", "end_turn", "done", "duplicate", "conflict", "signalled", "requeue"}[a]
}

// Decision is the result of a claim.
type Decision struct {
	Action Action
	Hold   Hold        // for Run and EndTurn
	Code   events.Code // for EndTurn: why; for Done: state_corrupt if the response cannot be read
	Turn   *Turn       // the turn as it was read; nil if the claim was created
	End    *Record     // for Done: the response, nil if the turn has not ended
}

// Claim creates the tool_call record. If the create is refused, the turn may have ended, may belong to another message, or
// may be taken over by this one.
func (j *Journal) Claim(ctx context.Context, c Claim) (Decision, error) {
	nonce := NewNonce()
	meta := Meta{
		Nonce: nonce, Epoch: 1, Lease: c.Lease, Effect: c.Effect, Digest: c.Digest,
		Fingerprint: c.Fingerprint, Outcome: c.RejectCode, Pool: j.pool, Trace: c.Trace,
	}
	call := Record{Key: c.Key.Public(events.RecordCall), Meta: meta, Data: c.Event}
	seq, rival, err := j.create(ctx, call, 0)
	if err != nil {
		return Decision{}, err
	}
	hold := Hold{Key: c.Key, Nonce: nonce, Epoch: 1, Token: seq, Claim: seq, Lease: c.Lease, Trace: c.Trace, Effect: c.Effect, Fingerprint: c.Fingerprint}
	if rival == nil {
		if c.RejectCode != "" {
			return Decision{Action: EndTurn, Hold: hold, Code: events.Code(c.RejectCode)}, nil
		}
		return Decision{Action: Run, Hold: hold}, nil
	}
	if rival.otherData(c.Fingerprint) {
		return Decision{Action: Conflict}, nil
	}
	// The common case of a refused claim is a late duplicate: read the response first.
	switch end, err := j.store.Last(ctx, c.Key.Public(events.RecordResponse)); {
	case err == nil && !c.cancels() && !end.Former(generationOf(rival)):
		return done(&end, nil), nil
	case err == nil:
	case !errors.Is(err, ErrNotFound):
		return Decision{}, err
	}
	hold.Token, hold.Claim = 0, generationOf(rival)
	return j.contend(ctx, c, hold, nil)
}

// done is the decision for a turn that has a response, readable or not.
func done(end *Record, t *Turn) Decision {
	d := Decision{Action: Done, Turn: t, End: end}
	if end.Err != nil {
		d.Code = events.CodeStateCorrupt
	}
	return d
}

// contend decides for a turn that was claimed before. T is an earlier read of it, or nil, which saves reading again what
// never changes. The new read has to show the claim, if its sequence is known (hold.Claim): an older read may show the
// response of an earlier turn under the same key. It has to show the answer whose message contends: an older read may not
// show the newest epoch.
func (j *Journal) contend(ctx context.Context, c Claim, hold Hold, t *Turn) (Decision, error) {
	for {
		var err error
		t, err = j.readSince(ctx, c.Key, max(hold.Claim, c.since), t)
		if err != nil {
			return Decision{}, err
		}
		hold.Epoch, hold.Claim = t.Epoch, generationOf(t.Claim)
		if c.question != "" && t.Claim != nil { // an answer has only the key of the turn
			hold.Effect, hold.Fingerprint = t.Claim.Meta.Effect, t.Claim.Meta.Fingerprint
		}
		switch {
		case t.Response != nil:
			if c.cancels() { // its owner was faster than the message of the cancel
				if err := j.closeQuestions(ctx, &c, t); err != nil {
					return Decision{}, err
				}
			}
			return done(t.Response, t), nil
		case t.Claim == nil:
			return Decision{Action: Leave, Turn: t}, nil // a stale read
		case t.corrupt:
			return Decision{Action: EndTurn, Hold: hold, Code: events.CodeStateCorrupt, Turn: t}, nil
		case !t.Lease.Same(c.Lease) && !c.Signal:
			return Decision{Action: Duplicate, Turn: t}, nil
		case !t.Lease.Same(c.Lease):
			d, again, err := j.signal(ctx, c, hold, t)
			if !again {
				return d, err
			}
		case t.Lease.Delivery >= c.Lease.Delivery:
			return Decision{Action: Leave, Turn: t}, nil
		default:
			d, again, err := j.takeover(ctx, c, hold, t)
			if !again {
				return d, err
			}
		}
	}
}
