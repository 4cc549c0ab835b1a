package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/subjects"
)

// Journal is the rules' access to the records: create, the one write, decides with the answer of the store who was
// first, and is repeated until that is known. A Hold is what a worker got from a claim or a takeover, and what each
// later write of its run takes.

// DefaultMaxTakeovers is how many owners of a turn may die or lose their lease before it ends as interrupted.
const DefaultMaxTakeovers = 10

// How long to wait before a create is sent again: a rival in flight is decided within
// milliseconds, an unreachable server is not.
const (
	undecidedPause = 20 * time.Millisecond
	unknownPause   = 100 * time.Millisecond
)

// Journal applies the rules of ownership to a [Store]. It holds no state of turns, except which have recently ended, and is
// safe for concurrent use.
type Journal struct {
	store        Store
	owner        string
	pool         string
	maxTakeovers int
	pause        func(ctx context.Context, d time.Duration) error
	unknown      func() // counts writes with unknown outcome
	ended        *recent.Set[TurnRef]
}

// Options of a [Journal]. The zero value is usable.
type Options struct {
	// MaxTakeovers bounds how many epochs of a turn may be sealed. Defaults to DefaultMaxTakeovers.
	MaxTakeovers int
	// Pause waits for d or until ctx ends. Defaults to a timer; simulations replace it.
	Pause func(ctx context.Context, d time.Duration) error
	// Pool is the group of workers that this one belongs to; claims name it, so that a sweep publishes a resume to the
	// queue of that pool. Defaults to the default pool.
	Pool string
	// OnUnknownWrite is called for each write whose outcome is unknown. Defaults to nothing.
	OnUnknownWrite func()
}

// New returns a journal on store. The owner names this worker in records, for operators.
func New(store Store, owner string, o Options) *Journal {
	j := &Journal{store: store, owner: owner, maxTakeovers: o.MaxTakeovers, pause: o.Pause, unknown: o.OnUnknownWrite}
	if o.Pool != subjects.DefaultPool {
		j.pool = o.Pool // the default needs no header
	}
	if j.maxTakeovers <= 0 {
		j.maxTakeovers = DefaultMaxTakeovers
	}
	j.ended = recent.New[TurnRef](maxEnded, endedFor)
	if j.pause == nil {
		j.pause = pause.For
	}
	if j.unknown == nil {
		j.unknown = func() {}
	}
	return j
}

// NewNonce returns a random text by which a writer recognises its own records.
func NewNonce() string { return rand.Text() }

// create is the one write of all rules: it stores a record once for the turn with a claim, a sequence, 0 if it is not known.
// If another writer was first, it returns that record as the rival. A record with the own nonce is its own, however often
// it was sent. A record of an earlier generation of the key is replaced. A write with unknown outcome is sent again until
// ctx ends, because it may have been stored (docs/journal.md#rule-5). If the bucket is gone, nothing is stored
// (docs/journal.md#rule-9).
func (j *Journal) create(ctx context.Context, r Record, claim uint64) (seq uint64, rival *Record, err error) {
	seq, _, rival, err = j.createOrFind(ctx, r, claim)
	return seq, rival, err
}

// createOrFind is create for a record that permits to enter a tool. Found is true if an earlier attempt, whose reply was lost, has
// stored the record: by now another worker may have ended what it began.
func (j *Journal) createOrFind(ctx context.Context, r Record, claim uint64) (seq uint64, found bool, rival *Record, err error) {
	r.Meta.Owner = j.owner
	var why error // the last error that is more than the end of ctx
	for {
		if seq, err = j.store.Create(ctx, r); err == nil {
			return seq, false, nil, nil
		}
		var exists *ExistsError
		switch {
		case errors.As(err, &exists) && exists.Seq == 0 && r.Seq > 0:
			r.Seq = 0 // the record to replace has expired
			continue
		case exists != nil:
			first, errAt := j.store.At(ctx, exists.Seq)
			switch {
			case errAt == nil && first.Key != r.Key:
				errAt = fmt.Errorf("journal: create %s: refused because of %s", r.Key, first.Key) // the response to another create
			case errAt == nil && first.Err == nil && first.Meta.Nonce == r.Meta.Nonce:
				return first.Seq, true, nil, nil
			case errAt == nil && first.Former(claim) && first.Seq != r.Seq:
				r.Seq = first.Seq
				continue
			case errAt == nil:
				return 0, false, &first, nil
			}
			err = errAt
		case errors.Is(err, ErrUndecided):
			if err := j.pause(ctx, undecidedPause); err != nil {
				return 0, false, nil, err
			}
			continue
		case errors.Is(err, ErrRefused), errors.Is(err, ErrGone):
			return 0, false, nil, err
		default:
			j.unknown()
		}
		if why == nil || ctx.Err() == nil {
			why = err
		}
		if errPause := j.pause(ctx, unknownPause); errPause != nil {
			return 0, false, nil, errors.Join(errPause, why)
		}
	}
}

// Hold is the right of this delivery to write to a turn, as the owner of an epoch or as a worker that only ends the turn.
type Hold struct {
	Key    subjects.Key // of the call: the turn's own, or a step of it
	Nonce  string       // of this delivery
	Epoch  int          // epoch under which it runs
	Token  uint64       // fencing token: sequence of the claim or takeover, 0 for a worker that only ends the turn
	Claim  uint64       // sequence of the claim: records below it are of an earlier generation of the key; 0 if it is not known
	Lease  Lease        // the message under which it runs; a run that parks twice needs it
	Trace  string       // traceparent copied into records
	Effect string       // effect of the claim, or the stricter one of the manifests of the worker that has taken the turn over
	// Fingerprint of the data, copied into records so that readers can match a response to the data.
	Fingerprint string
}

func (h *Hold) meta() Meta {
	return Meta{Nonce: h.Nonce, Epoch: max(h.Epoch, 1), Fingerprint: h.Fingerprint, Trace: h.Trace}
}

// retryRead repeats a read until it succeeds or ctx ends: a failed read must not end a tool that waits for a person.
func (j *Journal) retryRead(ctx context.Context, read func() error) error {
	for {
		err := read()
		if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrGone) {
			return err
		}
		if errPause := j.pause(ctx, unknownPause); errPause != nil {
			return errors.Join(errPause, err)
		}
	}
}
