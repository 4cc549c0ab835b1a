package idempotency

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A message of an agent or a user has separate records, under a key that no turn has ([subjects.MessageKey]). The worker that
// handles it creates them in this order, and awaits each one before the next:
//
//	text (ClaimMessage)               the claim: the content of the message, and all that was read in it
//	context_update.<variable> (Follow) each variable that it has changed, as the document of the chat has decided
//	structured_output (Follow)         the object of an agent that has no tool which runs by itself
//	the records of its turn            if it makes one; the claim of the turn names the message ([Meta].Message)
//	turn (NoteTurn)                    if that turn never runs, or runs under a reused key: for sweeps
//	handoff (Follow)                   the next speaker; of a message with a turn, once that has ended
//
// Each is a create, and each step in the document is a marked compare-and-set, so any worker that holds the message may continue
// where the last one stopped: a message has neither epochs nor takeovers. What a successor needs is in the text; it never reads
// the content again.

// What follows from a message, in the Outcome of its text: a sweep reads headers only.
const (
	DueNothing     = ""
	DueTurn        = "turn"         // a turn
	DueHandoff     = "handoff"      // a handoff
	DueTurnHandoff = "turn,handoff" // a turn, and a handoff when that has ended
)

// NoTurn is the outcome of the turn record of a message whose turn never runs, or by an event of its producer, after which nothing more
// follows from the message. Any other is the key of its turn.
const NoTurn = "none"

// MessageClaim is the request to store a message.
type MessageClaim struct {
	Key         subjects.Key
	Lease       Lease  // the inbound message
	Event       []byte // chat.text or chat.user_message
	Fingerprint string // of its content
	Digest      string // of the manifests by which it was read
	Due         string // what follows from it
	Trace       string
}

// ClaimMessage stores a message under its id and returns the text that is stored: of this message, or of an earlier one with
// the same id, whose fingerprint decides whether it is the same message.
func (j *Journal) ClaimMessage(ctx context.Context, c MessageClaim) (text Record, err error) {
	text = Record{Key: c.Key.Public(events.RecordText), Data: c.Event, Meta: Meta{
		Nonce: NewNonce(), Epoch: 1, Lease: c.Lease, Fingerprint: c.Fingerprint, Digest: c.Digest, Outcome: c.Due, Pool: j.pool, Trace: c.Trace,
	}}
	const noClaim = 0 // this is the claim
	seq, rival, err := j.create(ctx, text, noClaim)
	switch {
	case err != nil:
		return Record{}, err
	case rival == nil:
		text.Seq = seq
		return text, nil
	case rival.Err != nil:
		return Record{}, corrupt(rival)
	}
	return *rival, nil
}

// TextOf returns the text of a message, as the leader knows it, or [ErrNotFound].
func (j *Journal) TextOf(ctx context.Context, key subjects.Key) (Record, error) {
	text, err := j.store.Last(ctx, key.Public(events.RecordText))
	if err == nil && text.Err != nil {
		return Record{}, corrupt(&text)
	}
	return text, err
}

// Followed reports whether a record that follows from a message is stored, as the leader knows it.
func (j *Journal) Followed(ctx context.Context, text *Record, key subjects.Key, kind string, id ...string) (bool, error) {
	r, err := j.last(ctx, key.Public(kind, id...))
	return r != nil && !r.Former(text.Seq), err
}

// NoteTurn stores where the turn of a message is, [NoTurn] or its key, for sweeps: they look for it under the key in the text.
func (j *Journal) NoteTurn(ctx context.Context, text *Record, key subjects.Key, turn string) error {
	_, _, err := j.create(ctx, Record{
		Key: key.Private(events.RecordTurn), Meta: Meta{Nonce: NewNonce(), Epoch: 1, Fingerprint: text.Meta.Fingerprint, Outcome: turn, Trace: text.Meta.Trace},
	}, text.Seq)
	return err
}

// Follow stores an event that follows from a message, under a key of the message or of a call for it, and returns the record that
// counts: the one of an earlier worker, if it has stored one. One that was stored just now has no Time.
func (j *Journal) Follow(ctx context.Context, text *Record, key subjects.Key, event []byte, kind string, id ...string) (Record, error) {
	r := Record{
		Key: key.Public(kind, id...), Data: event, Meta: Meta{Nonce: NewNonce(), Epoch: 1, Fingerprint: text.Meta.Fingerprint, Trace: text.Meta.Trace},
	}
	seq, rival, err := j.create(ctx, r, text.Seq)
	switch {
	case err != nil:
		return Record{}, err
	case rival == nil:
		r.Seq = seq
		return r, nil
	case rival.Err != nil:
		return Record{}, corrupt(rival)
	}
	return *rival, nil
}
