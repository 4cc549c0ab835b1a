package idempotency

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// With on_key_reuse: run, other data under a used turn key is a turn under a second key, which its fingerprint completes.
// Which of the two keys a data runs under is decided once, by creating the place record before any claim of that data. A
// claim of the other data cannot decide it: it expires by itself, and then the plain key is free again while a turn of this
// data may be running under the second key.

// PlaceFirst is the outcome of a place record whose data runs under the plain turn key. Without an outcome it runs under the
// second key, see [subjects.Key.Reuse].
const PlaceFirst = "first"

// Placement is the key under which a data runs, as the place record ([subjects.Key.ReuseNote]) has it.
type Placement struct {
	Own bool // under the second key, not under the plain one

	seq uint64 // of the place record, 0 if there is none
}

// Place decides under which key the data of c runs, c.Key or own, or returns the earlier decision. It fails with [ErrDamaged] if the place record cannot be read.
func (j *Journal) Place(ctx context.Context, c Claim, own subjects.Key) (Placement, error) {
	seen, err := j.readPlace(ctx, c, own)
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

// Placed returns the decision for the data of c, c.Key or own: the plain key if there is none.
func (j *Journal) Placed(ctx context.Context, c Claim, own subjects.Key) (Placement, error) {
	seen, err := j.readPlace(ctx, c, own)
	if err != nil {
		return Placement{}, err
	}
	place, _, err := seen.placement()
	return place, err
}

// MoveOut moves data from the plain key, which other data has claimed since, to its second key. It fails if the place record
// is not the one that was read: then nothing is decided, and the place has to be read again.
func (j *Journal) MoveOut(ctx context.Context, c Claim, p Placement) error {
	note := placeRecord(c, Placement{Own: true})
	note.Seq, note.Meta.Owner = p.seq, j.owner
	if _, err := j.store.Create(ctx, note); err != nil {
		return fmt.Errorf("journal: move the turn to its second key: %w", err)
	}
	return nil
}

// placeSeen has the records that decide the place of a data.
type placeSeen struct {
	fingerprint string
	note        *Record // the place record
	plain, own  *Record // the claims under either key, of whatever data
}

func (j *Journal) readPlace(ctx context.Context, c Claim, own subjects.Key) (placeSeen, error) {
	found, err := j.store.LastOf(ctx, []string{c.Key.ReuseNote(c.Fingerprint), c.Key.Public(events.RecordCall), own.Public(events.RecordCall)})
	if err != nil {
		return placeSeen{}, err
	}
	return placeSeen{fingerprint: c.Fingerprint, note: found[0], plain: found[1], own: found[2]}, nil
}

// placement is the decision, if there is one. A claim of the data decides, because its tool may have been entered there: the
// place record may have expired before the claim, and workers of old versions claim without one.
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
		place.Own = s.note.Meta.Outcome != PlaceFirst
	}
	return place, true, nil
}

// placeRecord is the record of a placement.
func placeRecord(c Claim, p Placement) Record {
	verdict := PlaceFirst
	if p.Own {
		verdict = ""
	}
	return Record{
		Key:  c.Key.ReuseNote(c.Fingerprint),
		Meta: Meta{Nonce: NewNonce(), Epoch: 1, Lease: c.Lease, Fingerprint: c.Fingerprint, Outcome: verdict, Trace: c.Trace},
	}
}
