package idempotency

import (
	"context"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn key can be used again in two ways.
//
// After the retention, for a new turn. The records of a turn expire one by one, the claim first. The next claim of the key
// begins a new generation of it, while other records of the earlier one may remain for days. They have lower sequences than
// the new claim: they do not count, and a create of the new turn replaces them by compare-and-set. Two exceptions: a cancel
// may be older than its claim (cancel.go), and an unreadable record is never treated as old: it fails closed.
//
// Before that, with other data. With on_key_reuse: run this is a turn under a second key, the reused key, which the
// fingerprint of the data completes. Which of the two keys the data runs under is chosen once, by creating the reuse record
// before any claim of that data. The claim of the other data cannot decide it: it expires by itself, and then the plain key
// is free again while a turn of this data may be running under the reused key.

// generationOf returns the sequence from which on records belong to the turn with a claim. It is 0, so that all records do,
// for a claim that is not known or unreadable: it may have been damaged later.
func generationOf(claim *Record) uint64 {
	if claim == nil || claim.Err != nil {
		return 0
	}
	return claim.Seq
}

// Former reports whether a record is of an earlier generation of its key than the one that began with the claim of a
// sequence; 0 stands for a claim that is not known. It does not apply to cancels.
func (r *Record) Former(claim uint64) bool {
	return r.Seq < claim && r.Err == nil
}

// has reports whether a record (nil: none) belongs to the turn of the hold.
func (h *Hold) has(r *Record) bool { return r != nil && !r.Former(h.Claim) }

// currentRecords removes the records of an earlier generation.
func currentRecords(records []Record) []Record {
	at := slices.IndexFunc(records, isOfTurn(events.RecordCall))
	if at < 0 || at == 0 && !slices.ContainsFunc(records, isCancel) {
		return records
	}
	var response *Record
	if n := slices.IndexFunc(records, isOfTurn(events.RecordResponse)); n >= 0 {
		response = &records[n]
	}
	call := &records[at]
	claim := generationOf(call)
	life := make([]Record, 0, len(records))
	for _, r := range records {
		if isCancel(r) && cancels(&r, response, call) || !isCancel(r) && !r.Former(claim) {
			life = append(life, r)
		}
	}
	return life
}

// OutcomePlainKey is the outcome of a reuse record whose data runs under the plain turn key. Without an outcome it runs
// under the reused key, see [subjects.Key.Reuse].
const OutcomePlainKey = "first"

// KeyChoice is the key under which the data of a turn runs, as the reuse record ([subjects.Key.ReuseNote]) has it.
type KeyChoice struct {
	Reused bool // the reused key, not the plain one

	seq uint64 // of the reuse record, 0 if there is none
}

// ChooseKey chooses under which key the data of c runs, c.Key or the reused one, or returns the earlier choice. It fails with
// [ErrDamaged] if the reuse record cannot be read.
func (j *Journal) ChooseKey(ctx context.Context, c Claim, reused subjects.Key) (KeyChoice, error) {
	seen, err := j.readKeys(ctx, c, reused)
	if err != nil {
		return KeyChoice{}, err
	}
	choice, chosen, err := seen.choice()
	if err != nil || seen.record != nil {
		return choice, err
	}
	if !chosen {
		choice.Reused = seen.plain != nil && c.conflicts(seen.plain)
	}
	seq, rival, err := j.create(ctx, reuseRecord(c, choice), 0)
	switch {
	case err != nil:
		return KeyChoice{}, err
	case rival != nil:
		seen.record = rival
		choice, _, err = seen.choice()
		return choice, err
	}
	return KeyChoice{Reused: choice.Reused, seq: seq}, nil
}

// ChosenKey returns the choice for the data of c, c.Key or the reused one: the plain key if none was chosen.
func (j *Journal) ChosenKey(ctx context.Context, c Claim, reused subjects.Key) (KeyChoice, error) {
	seen, err := j.readKeys(ctx, c, reused)
	if err != nil {
		return KeyChoice{}, err
	}
	choice, _, err := seen.choice()
	return choice, err
}

// MoveToReusedKey moves data from the plain key, which other data has claimed since it was chosen, to its reused key. It
// fails if the reuse record is not the one that was read: then nothing has changed, and the choice has to be read again.
func (j *Journal) MoveToReusedKey(ctx context.Context, c Claim, chosen KeyChoice) error {
	r := reuseRecord(c, KeyChoice{Reused: true})
	r.Seq, r.Meta.Owner = chosen.seq, j.owner
	if _, err := j.store.Create(ctx, r); err != nil {
		return fmt.Errorf("journal: move the turn to its reused key: %w", err)
	}
	return nil
}

// keyRecords are the records that decide the key of the data.
type keyRecords struct {
	fingerprint   string
	record        *Record // the reuse record
	plain, reused *Record // the claims under either key, of whatever data
}

func (j *Journal) readKeys(ctx context.Context, c Claim, reused subjects.Key) (keyRecords, error) {
	found, err := j.store.LastOf(ctx, []string{c.Key.ReuseNote(c.Fingerprint), c.Key.Public(events.RecordCall), reused.Public(events.RecordCall)})
	if err != nil {
		return keyRecords{}, err
	}
	return keyRecords{fingerprint: c.Fingerprint, record: found[0], plain: found[1], reused: found[2]}, nil
}

// choice returns the key of the data, and whether it is chosen. A claim of the data decides, because its tool may have been
// entered there: the reuse record may have expired before the claim, and workers of old versions claim without one.
func (s keyRecords) choice() (choice KeyChoice, chosen bool, err error) {
	if s.record != nil {
		choice.seq = s.record.Seq
	}
	switch {
	case s.reused != nil:
		choice.Reused = true
	case s.plain != nil && s.plain.sameData(s.fingerprint):
	case s.record == nil:
		return choice, false, nil
	case s.record.Err != nil:
		return KeyChoice{}, false, fmt.Errorf("%w: %s: %w", ErrDamaged, s.record.Key, s.record.Err)
	default:
		choice.Reused = s.record.Meta.Outcome != OutcomePlainKey
	}
	return choice, true, nil
}

// reuseRecord is the record of a choice.
func reuseRecord(c Claim, choice KeyChoice) Record {
	outcome := OutcomePlainKey
	if choice.Reused {
		outcome = ""
	}
	return Record{
		Key:  c.Key.ReuseNote(c.Fingerprint),
		Meta: Meta{Nonce: NewNonce(), Epoch: noOwner, Lease: c.Lease, Fingerprint: c.Fingerprint, Outcome: outcome, Trace: c.Trace},
	}
}
