package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Claim asks for a turn.
type Claim struct {
	Key   subjects.Key
	Lease Lease  // the message that asks
	Event []byte // the tool_call event
	// Signal says that the message is not the turn itself but an answer, expiry or cancel:
	// such a message is never a duplicate publish.
	Signal bool

	Effect      string // unsafe, replay, keyed, idempotent, none
	Digest      string
	Fingerprint string
	Verdict     string // code of a turn that fails before its tool, "" for one that may run
	Trace       string

	// Taker is asked before a turn is taken over. Nil takes over by the claim alone.
	Taker Taker

	// Ack makes the public event that closes a question on the screen; a cancel closes all
	// that are open. See [Answer].
	Ack func(decided Record) ([]byte, error)

	question string // of an answer or expiry
	mute     bool   // it decided nothing, so it wakes nobody
}

// Action is what a worker has to do with the message it claimed for.
type Action int

// The actions. None of them is decided by a read alone: whatever Run and Conclude write is
// created once.
const (
	// Leave: neither acknowledge nor nak; the message comes back when its lease lapses.
	Leave Action = iota
	// Run: this delivery owns the turn and enters the tool.
	Run
	// Conclude: store the response that Code calls for, without entering the tool.
	Conclude
	// Done: the turn has its response, or is parked; acknowledge.
	Done
	// Duplicate: another message owns the turn and is still in the stream; acknowledge.
	Duplicate
	// Conflict: the key was claimed with other data; this data is never run.
	Conflict
	// Signalled: the owner holds the turn in memory and has been told; acknowledge.
	Signalled
	// GiveBack: the turn is claimed, and only a worker that knows its workflow can continue it:
	// deliver the message again after a delay. Nothing was stored.
	GiveBack
)

// String returns the name used in logs and metrics.
func (a Action) String() string {
	return [...]string{"leave", "run", "conclude", "done", "duplicate", "conflict", "signalled", "give_back"}[a]
}

// Decision is the answer to a claim.
type Decision struct {
	Action Action
	Hold   Hold        // for Run and Conclude
	Code   events.Code // for Conclude: why; for Done: state_corrupt if the response cannot be read
	Turn   *Turn       // what the journal held; nil when the claim was won at once
	End    *Record     // for Done: the response, nil if the turn has not ended
}

// Claim creates the tool_call record. If it is refused, the record that is there decides:
// the turn may have ended, be somebody else's, or be this message's to take over.
func (j *Journal) Claim(ctx context.Context, c Claim) (Decision, error) {
	nonce := NewNonce()
	meta := Meta{
		Nonce: nonce, Epoch: 1, Lease: c.Lease, Effect: c.Effect, Digest: c.Digest,
		Fingerprint: c.Fingerprint, Verdict: c.Verdict, Pool: j.pool, Trace: c.Trace,
	}
	call := Record{Key: c.Key.Public(events.RecordCall), Meta: meta, Data: c.Event}
	seq, rival, err := j.create(ctx, call, 0)
	if err != nil {
		return Decision{}, err
	}
	hold := Hold{Key: c.Key, Nonce: nonce, Epoch: 1, Token: seq, Claim: seq, Lease: c.Lease, Trace: c.Trace, Effect: c.Effect, Fingerprint: c.Fingerprint}
	if rival == nil {
		if c.Verdict != "" {
			return Decision{Action: Conclude, Hold: hold, Code: events.Code(c.Verdict)}, nil
		}
		return Decision{Action: Run, Hold: hold}, nil
	}
	if rival.otherData(c.Fingerprint) {
		return Decision{Action: Conflict}, nil
	}
	// The common case of a refused claim is a late duplicate: look for the end first.
	switch end, err := j.store.Last(ctx, c.Key.Public(events.RecordResponse)); {
	case err == nil && !c.cancels() && !end.Former(lifeOf(rival)):
		return done(&end, nil), nil
	case err == nil:
	case !errors.Is(err, ErrNotFound):
		return Decision{}, err
	}
	hold.Token, hold.Claim = 0, lifeOf(rival)
	return j.contend(ctx, c, hold, nil)
}

// done is the decision on a turn that has its response, or what should be one.
func done(end *Record, t *Turn) Decision {
	d := Decision{Action: Done, Turn: t, End: end}
	if end.Err != nil {
		d.Code = events.CodeStateCorrupt
	}
	return d
}

// contend decides on a turn that somebody else has claimed. T is an earlier read of it, or nil. A read has to
// show the claim that hold names, if any: one that is older may show the end of a former life.
func (j *Journal) contend(ctx context.Context, c Claim, hold Hold, t *Turn) (Decision, error) {
	for {
		var err error
		t, err = j.readSince(ctx, c.Key, hold.Claim, t)
		if err != nil {
			return Decision{}, err
		}
		hold.Epoch, hold.Claim = t.Epoch, lifeOf(t.Claim)
		if c.question != "" && t.Claim != nil { // an answer knows nothing of the turn but its key
			hold.Effect, hold.Fingerprint = t.Claim.Meta.Effect, t.Claim.Meta.Fingerprint
		}
		switch {
		case t.Response != nil:
			if c.cancels() { // its owner was faster than the message that brings the wish
				if err := j.closeQuestions(ctx, &c, t); err != nil {
					return Decision{}, err
				}
			}
			return done(t.Response, t), nil
		case t.Claim == nil:
			return Decision{Action: Leave, Turn: t}, nil // a stale read
		case t.corrupt:
			return Decision{Action: Conclude, Hold: hold, Code: events.CodeStateCorrupt, Turn: t}, nil
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
