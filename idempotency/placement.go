package idempotency

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// PlaceFirst is the verdict of a place record whose data runs under the plain turn key. Without a
// verdict it runs under a key of its own, see [subjects.Key.Reuse].
const PlaceFirst = "first"

// Placement is the key under which one data of a turn key runs. It is decided once, by creating the place
// record (the note of [subjects.Key.ReuseNote]) before any claim of that data. The claim of other
// data decides nothing later: it ages by itself, and once the retention has taken it, the plain key is
// free again while a turn of this data may be running under a key of its own.
type Placement struct {
	Own bool // under the key that the fingerprint completes, not under the plain one

	seq uint64 // of the place record, 0 if there is none
}

// Place decides under which key the data of c runs, own being the alternative to c.Key, or returns
// what was decided before. It fails with [ErrDamaged] if the place record cannot be read.
func (j *Journal) Place(ctx context.Context, c Claim, own subjects.Key) (Placement, error) {
	seen, err := j.lookPlace(ctx, c, own)
	if err != nil {
		return Placement{}, err
	}
	place, decided, err := seen.placement()
	if err != nil || seen.note != nil {
		return place, err
	}
	if !decided {
		place.Own = seen.plain != nil && seen.plain.otherData(c.Fingerprint)
	}
	seq, rival, err := j.create(ctx, placeRecord(c, place), 0)
	switch {
	case err != nil:
		return Placement{}, err
	case rival != nil:
		seen.note = rival
		place, _, err = seen.placement()
		return place, err
	}
	return Placement{Own: place.Own, seq: seq}, nil
}

// Placed returns what was decided of the data of c, own being the alternative to c.Key: the plain key if nothing was.
func (j *Journal) Placed(ctx context.Context, c Claim, own subjects.Key) (Placement, error) {
	seen, err := j.lookPlace(ctx, c, own)
	if err != nil {
		return Placement{}, err
	}
	place, _, err := seen.placement()
	return place, err
}

// MoveOut moves data that was to run under the plain key, which other data has claimed since, to
// a key of its own. It fails if the place record is not the one that was read: then nothing is
// decided, and the place has to be looked up again.
func (j *Journal) MoveOut(ctx context.Context, c Claim, p Placement) error {
	note := placeRecord(c, Placement{Own: true})
	note.Seq, note.Meta.Owner = p.seq, j.owner
	if _, err := j.store.Create(ctx, note); err != nil {
		return fmt.Errorf("journal: move the turn to a key of its own: %w", err)
	}
	return nil
}

// placeSeen is what the journal has about where one data of a turn key runs.
type placeSeen struct {
	fingerprint string
	note        *Record // the place record
	plain, own  *Record // the claims under either key, of whatever data
}

func (j *Journal) lookPlace(ctx context.Context, c Claim, own subjects.Key) (placeSeen, error) {
	found, err := j.store.LastOf(ctx, []string{c.Key.ReuseNote(c.Fingerprint), c.Key.Public(events.RecordCall), own.Public(events.RecordCall)})
	if err != nil {
		return placeSeen{}, err
	}
	return placeSeen{fingerprint: c.Fingerprint, note: found[0], plain: found[1], own: found[2]}, nil
}

// placement is what was decided, if anything was. A claim of the data decides, because it may have been entered there: the
// place record may have expired before it, and a worker of a version that knows none claims without it.
func (s placeSeen) placement() (place Placement, decided bool, err error) {
	if s.note != nil {
		place.seq = s.note.Seq
	}
	switch {
	case s.own != nil:
		place.Own = true
	case s.plain != nil && s.plain.sameData(s.fingerprint):
	case s.note == nil:
		return place, false, nil
	case s.note.Err != nil:
		return Placement{}, false, fmt.Errorf("%w: %s: %w", ErrDamaged, s.note.Key, s.note.Err)
	default:
		place.Own = s.note.Meta.Verdict != PlaceFirst
	}
	return place, true, nil
}

func placeRecord(c Claim, p Placement) Record {
	verdict := PlaceFirst
	if p.Own {
		verdict = ""
	}
	return Record{
		Key:  c.Key.ReuseNote(c.Fingerprint),
		Meta: Meta{Nonce: NewNonce(), Epoch: 1, Lease: c.Lease, Fingerprint: c.Fingerprint, Verdict: verdict, Trace: c.Trace},
	}
}

// sameData reports whether a claim is known to be of the data with a fingerprint.
func (r *Record) sameData(fingerprint string) bool {
	return r.Err == nil && fingerprint != "" && r.Meta.Fingerprint == fingerprint
}

// otherData reports whether a claim is known to be of other data than that with a fingerprint.
func (r *Record) otherData(fingerprint string) bool {
	return r.Err == nil && fingerprint != "" && r.Meta.Fingerprint != "" && r.Meta.Fingerprint != fingerprint
}
