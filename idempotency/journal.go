package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/recent"
	"github.com/oneturn/oneturn/subjects"
)

// DefaultMaxTakeovers is how often a turn is continued by another worker before it ends
// as interrupted.
const DefaultMaxTakeovers = 10

// How long to wait before a create is sent again: a rival in flight is decided within
// milliseconds, an unreachable server is not.
const (
	undecidedPause = 20 * time.Millisecond
	unknownPause   = 100 * time.Millisecond
)

// Journal applies the rules of ownership to a [Store]. It holds no state of turns, except which have
// ended lately, and is safe for concurrent use.
type Journal struct {
	store        Store
	owner        string
	pool         string
	maxTakeovers int
	pause        func(ctx context.Context, d time.Duration) error
	unknown      func() // counts writes with unknown outcome
	finished     *recent.Set[TurnRef]
}

// Options of a [Journal]. The zero value is usable.
type Options struct {
	// MaxTakeovers bounds how often a turn changes hands. Defaults to DefaultMaxTakeovers.
	MaxTakeovers int
	// Pause waits for d or until ctx ends. Defaults to a timer; simulations bring their own.
	Pause func(ctx context.Context, d time.Duration) error
	// Pool is where the messages of this worker come from; claims name it, so that a resume
	// goes there too. Defaults to the default pool.
	Pool string
	// OnUnknownWrite is called for each write whose outcome is unknown. Defaults to nothing.
	OnUnknownWrite func()
}

// New returns a journal on store. The owner names this worker in records, for operators.
func New(store Store, owner string, o Options) *Journal {
	j := &Journal{store: store, owner: owner, maxTakeovers: o.MaxTakeovers, pause: o.Pause, unknown: o.OnUnknownWrite}
	if o.Pool != subjects.DefaultPool {
		j.pool = o.Pool // the usual name is not worth a header
	}
	if j.maxTakeovers <= 0 {
		j.maxTakeovers = DefaultMaxTakeovers
	}
	j.finished = recent.New[TurnRef](maxFinished, finishedFor)
	if j.pause == nil {
		j.pause = pause
	}
	if j.unknown == nil {
		j.unknown = func() {}
	}
	return j
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// NewNonce returns a random text that tells a writer its own records again.
func NewNonce() string { return rand.Text() }

// Load reads a turn from the leader.
func (j *Journal) Load(ctx context.Context, key subjects.Key) (*Turn, error) {
	return Load(ctx, j.store, key)
}

// Load reads a turn from the leader of a store. Of a turn with more records than one read returns it
// reads what is needed to end it: see [Turn.Crowded].
func Load(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	return load(ctx, s, key, nil)
}

// load is Load of a turn of which records are known, see [Store].
func load(ctx context.Context, s Store, key subjects.Key, known []Record) (*Turn, error) {
	records, err := s.Scan(ctx, key, known)
	if errors.Is(err, ErrTooMany) {
		return loadNamed(ctx, s, key)
	}
	if err != nil {
		return nil, err
	}
	return newTurn(key, records), nil
}

// loadAgain is Load of a turn of which an earlier read is known, which may be nil.
func (j *Journal) loadAgain(ctx context.Context, key subjects.Key, earlier *Turn) (*Turn, error) {
	if earlier == nil || earlier.Claim == nil { // what a claim follows may be overwritten
		return load(ctx, j.store, key, nil)
	}
	return load(ctx, j.store, key, earlier.Records)
}

// create stores a record once in the life of the turn that was claimed at a sequence, 0 where that
// is not known. It returns the record that is there instead if somebody else
// was first; a record of our own nonce is ours, however often it was sent. A write with
// unknown outcome is sent again until ctx ends, because it may have been stored.
func (j *Journal) create(ctx context.Context, r Record, claim uint64) (seq uint64, rival *Record, err error) {
	r.Meta.Owner = j.owner
	var why error // the last error that is more than the end of ctx
	for {
		if seq, err = j.store.Create(ctx, r); err == nil {
			return seq, nil, nil
		}
		var exists *ExistsError
		switch {
		case errors.As(err, &exists) && exists.Seq == 0 && r.Seq > 0:
			r.Seq = 0 // what was to be replaced has expired
			continue
		case exists != nil:
			found, errAt := j.store.At(ctx, exists.Seq)
			switch {
			case errAt == nil && found.Key != r.Key:
				errAt = fmt.Errorf("journal: create %s: refused for the sake of %s", r.Key, found.Key) // the answer to another create
			case errAt == nil && found.Err == nil && found.Meta.Nonce == r.Meta.Nonce:
				return found.Seq, nil, nil
			case errAt == nil && found.Former(claim) && found.Seq != r.Seq:
				r.Seq = found.Seq
				continue
			case errAt == nil:
				return 0, &found, nil
			}
			err = errAt
		case errors.Is(err, ErrUndecided):
			if err := j.pause(ctx, undecidedPause); err != nil {
				return 0, nil, err
			}
			continue
		case errors.Is(err, ErrRefused), errors.Is(err, ErrGone):
			return 0, nil, err
		default:
			j.unknown()
		}
		if why == nil || ctx.Err() == nil {
			why = err
		}
		if errPause := j.pause(ctx, unknownPause); errPause != nil {
			return 0, nil, errors.Join(errPause, why)
		}
	}
}

// Hold is a turn that this delivery may write to.
type Hold struct {
	Key    subjects.Key
	Nonce  string // of this delivery
	Epoch  int    // epoch under which it runs
	Token  uint64 // fencing token: sequence of the claim or takeover, 0 for a mere finisher
	Claim  uint64 // sequence of the claim: records below it belong to a former life of the key; 0 if it is not known
	Lease  Lease  // the message under which it runs; a run that parks twice needs it
	Trace  string // traceparent copied into records
	Effect string // effect of the tool as the claim pinned it
	// Fingerprint of the data, copied into records so that readers can tell whose end it is.
	Fingerprint string
}

// Finish stores the response of a turn. It returns nil and true when the response is stored
// and ours, and false when the turn already has one: then the result is late, must be
// dropped, and the message may be acknowledged. On any error the message must not be
// acknowledged; with [ErrDamaged] the turn has an end that nobody can read.
func (j *Journal) Finish(ctx context.Context, h Hold, event []byte) (stored bool, err error) {
	_, rival, err := j.create(ctx, Record{Key: h.Key.Public(events.RecordResponse), Meta: h.meta(), Data: event}, h.Claim)
	if err == nil && rival != nil && rival.Err != nil {
		return false, fmt.Errorf("%w: %s", ErrDamaged, rival.Key)
	}
	return err == nil && rival == nil, err
}

func (h *Hold) meta() Meta {
	return Meta{Nonce: h.Nonce, Epoch: max(h.Epoch, 1), Fingerprint: h.Fingerprint, Trace: h.Trace}
}
