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

// Claim is the request of a message for a turn: of the turn's own message and of a cancel by [Journal.Claim]; answers, expiries
// and resumes make one internally, to contend for a turn that was claimed before.
type Claim struct {
	Key   subjects.Key
	Lease Lease  // the message
	Event []byte // the tool_call event, which the claim stores
	// Signal marks a message that is not the turn itself but an answer, expiry or cancel: it is never a duplicate of
	// the turn's message. Only a cancel calls [Journal.Claim] with it, since it may claim a turn: its Event is then the
	// tool_call of a turn with RejectCode cancelled. If the turn was claimed before, neither is stored.
	Signal bool

	Effect      string // unsafe, replay, keyed, idempotent, none
	Digest      string // of the manifests that bound the tool
	Fingerprint string // of the data; "" for a cancel, which has none and conflicts with none
	Message     string // token of the message that makes the turn, "" if its own event does
	RejectCode  string // code of a turn that fails before its tool, "" for one that may run
	Trace       string

	// NewOwner is asked which effect the tool has today before a turn is taken over. If it is nil, the effect in the claim
	// counts alone.
	NewOwner NewOwner

	// Ack returns the public event that closes a question; a cancel closes all open ones. See [Answer].
	Ack func(decided Record) ([]byte, error)

	question QuestionRef // of an answer or expiry
	since    uint64      // sequence of the record that decides the question: a read without that is stale
	noSignal bool        // it decided nothing, so it signals no owner
}

// Action is what a worker has to do with the message it claimed for.
type Action int

// The actions. Each is safe although it may be due to a stale read. After Leave and Requeue this message is delivered again
// and decides then; after Duplicate and Signalled the lease of the turn does. Done and Conflict depend on a record that never
// changes. Run and EndTurn are confirmed by a create: of the claim, the takeover record or the response.
const (
	// Leave: neither acknowledge nor nak; the message is redelivered when its ack wait is over.
	Leave Action = iota
	// Run: this delivery owns the turn and enters the tool.
	Run
	// EndTurn: store the response that Code calls for, without entering the tool.
	EndTurn
	// Done: nothing is left to do for the message; acknowledge. The turn has its response, or it continues without this
	// message: it is parked, its lease is still held (of a resume), or the message is an answer that does not count.
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
	// Turn is the turn as it was read. It is nil if the claim was created, and if the decision needed no read of the turn:
	// with Conflict, and with Done if the response was read by its name.
	Turn *Turn
	End  *Record // for Done: the response, nil if the turn has not ended
}

// Claim creates the tool_call record. If the create is refused, the turn may have ended, may belong to another message, or
// may be taken over by this one.
func (j *Journal) Claim(ctx context.Context, c Claim) (Decision, error) {
	nonce := NewNonce()
	meta := Meta{
		Nonce: nonce, Epoch: 1, Lease: c.Lease, Effect: c.Effect, Digest: c.Digest,
		Fingerprint: c.Fingerprint, Outcome: c.RejectCode, Pool: j.pool, Message: c.Message, Trace: c.Trace,
	}
	call := Record{Key: c.Key.Public(events.RecordCall), Meta: meta, Data: c.Event}
	const noClaim = 0 // this is the claim: it replaces no record, whatever generation that is of
	seq, found, rival, err := j.createOrFind(ctx, call, noClaim)
	if err != nil {
		return Decision{}, err
	}
	if found {
		switch end, ended, err := j.response(ctx, c.Key, seq); {
		case err != nil:
			return Decision{}, err
		case ended:
			return done(end, nil), nil
		}
	}
	hold := Hold{Key: c.Key, Nonce: nonce, Epoch: 1, Token: seq, Claim: seq, Lease: c.Lease, Trace: c.Trace, Effect: c.Effect, Fingerprint: c.Fingerprint}
	if rival == nil {
		if c.RejectCode != "" {
			return Decision{Action: EndTurn, Hold: hold, Code: events.Code(c.RejectCode)}, nil
		}
		return Decision{Action: Run, Hold: hold}, nil
	}
	if c.conflicts(rival) {
		return Decision{Action: Conflict}, nil
	}
	hold.Token, hold.Claim = 0, generationOf(rival) // no owner (yet): the claim is the one of another message or delivery
	if rival.otherData(c.Fingerprint) {
		hold.Fingerprint = rival.Meta.Fingerprint
	}
	// The common case of a refused claim is a late duplicate: one read of the response decides it. A cancel needs the whole
	// turn, also after its end, to close its questions.
	switch end, ended, err := j.response(ctx, c.Key, hold.Claim); {
	case err != nil:
		return Decision{}, err
	case ended && !c.cancels():
		return done(end, nil), nil
	}
	return j.contend(ctx, c, hold, nil)
}

// conflicts reports whether a claim is of other data than c. Two deliveries of one message of an agent make one turn, whichever data
// each of them has: of a correction that one was asked for, and the other found no model to ask.
func (c *Claim) conflicts(with *Record) bool {
	return with.otherData(c.Fingerprint) && (c.Message == "" || with.Meta.Message != c.Message)
}

// response returns the response of a call and reports whether it has one, in the generation that began with a claim.
func (j *Journal) response(ctx context.Context, key subjects.Key, claim uint64) (*Record, bool, error) {
	end, err := j.store.Last(ctx, key.Public(events.RecordResponse))
	switch {
	case errors.Is(err, ErrNotFound), err == nil && end.Former(claim):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return &end, true, nil
}

// done is the decision for a turn that has a response, readable or not.
func done(end *Record, t *Turn) Decision {
	d := Decision{Action: Done, Turn: t, End: end}
	if end.Err != nil {
		d.Code = events.CodeStateCorrupt
	}
	return d
}

// contend decides for a turn that was claimed before, and reads it again as long as another message was first. T is an earlier
// read of it, or nil: what that has read is not read again, since it never changes. A read without one of these records is
// stale and is repeated:
//   - the claim, if its sequence is known (hold.Claim): such a read may show the response of an earlier generation
//   - the answer whose message contends (c.since): such a read may lack the newest epoch, whose owner has to be signalled
func (j *Journal) contend(ctx context.Context, c Claim, hold Hold, t *Turn) (Decision, error) {
	for {
		var err error
		t, err = j.readSince(ctx, c.Key, max(hold.Claim, c.since), t)
		if err != nil {
			return Decision{}, err
		}
		hold.Epoch, hold.Claim = t.Epoch, generationOf(t.Claim)
		if c.question != (QuestionRef{}) && t.Claim != nil { // an answer has only the key of the turn
			hold.Effect, hold.Fingerprint = t.Claim.Meta.Effect, t.Claim.Meta.Fingerprint
		}
		switch {
		case t.Response != nil:
			if c.cancels() { // its owner was faster than the message of the cancel
				if err := j.closeQuestions(ctx, &c, t, t.Questions()); err != nil {
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
