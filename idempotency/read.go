package idempotency

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn is read from the leader (docs/journal.md#reading-a-turn). Load reads all its records, readSince repeats that until the
// read shows a record that this worker knows of. The other reads are of single records by their names, which cost the
// server less than to list the records of a turn.

// Load reads a turn from the leader, by the key of any of its calls.
func (j *Journal) Load(ctx context.Context, key subjects.Key) (*Turn, error) {
	return Load(ctx, j.store, key)
}

// Load reads a turn from the leader of a store. If the turn has more records than one read returns, Load reads only what is
// needed to end it: see [Turn.Oversized].
func Load(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	return load(ctx, s, key, nil)
}

// load is Load for a caller that knows records of the turn, see [Store].
func load(ctx context.Context, s Store, key subjects.Key, known []Record) (*Turn, error) {
	key = key.OfTurn()
	records, err := s.Scan(ctx, key, known)
	if errors.Is(err, ErrTooMany) {
		return loadNamed(ctx, s, key)
	}
	if err != nil {
		return nil, err
	}
	return newTurn(key, records), nil
}

// loadAgain is Load for a caller with an earlier read of the turn, which may be nil.
func (j *Journal) loadAgain(ctx context.Context, key subjects.Key, earlier *Turn) (*Turn, error) {
	if earlier == nil || earlier.Claim == nil { // without a claim, records may be replaced by the next one
		return load(ctx, j.store, key, nil)
	}
	return load(ctx, j.store, key, earlier.Records)
}

// maxRereads bounds how often a stale read is repeated, [unknownPause] apart: a leader that was replaced answers until it
// detects that, which takes milliseconds.
const maxRereads = 20

// readSince reads a turn at least up to the record with a sequence. A leader that was replaced and has not detected it
// answers with older contents; such a read lacks the record and is repeated. A read that has the record has everything that
// was stored before it, because all names come in one response. Earlier is an earlier read of the turn, or nil.
func (j *Journal) readSince(ctx context.Context, key subjects.Key, seq uint64, earlier *Turn) (*Turn, error) {
	for range maxRereads {
		t, err := j.loadAgain(ctx, key, earlier)
		if err != nil || t.holds(seq) {
			return t, err
		}
		if err := j.pause(ctx, unknownPause); err != nil {
			return nil, err
		}
	}
	return nil, ErrStale
}

// readUntil is readSince for the owner of a turn: a read that fails is repeated until ctx ends.
func (j *Journal) readUntil(ctx context.Context, key subjects.Key, seq uint64, earlier *Turn) (t *Turn, err error) {
	var stale error
	err = j.retryRead(ctx, func() error {
		if t, err = j.readSince(ctx, key, seq, earlier); errors.Is(err, ErrStale) {
			stale = err
			return nil
		}
		return err
	})
	if err == nil {
		err = stale
	}
	return t, err
}

// holds reports whether the record with a sequence was read; 0 stands for none.
func (t *Turn) holds(seq uint64) bool {
	return seq == 0 || slices.ContainsFunc(t.Records, func(r Record) bool { return r.Seq == seq })
}

// LoadEnds reads from the leader whether and how a turn has ended: its claim, its response and its cancel, nothing else.
func LoadEnds(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	key = key.OfTurn()
	found, err := s.LastOf(ctx, []string{key.Public(events.RecordCall), key.Public(events.RecordResponse), key.Public(events.RecordCancel)})
	if err != nil {
		return nil, err
	}
	return newTurn(key, inOrder(nil, found)), nil
}

// TurnOf returns the turn with records that were read by their names. Their data does not matter.
func TurnOf(key subjects.Key, records []*Record) *Turn { return newTurn(key, inOrder(nil, records)) }

// loadNamed reads the records that decide who owns a call and whether it has ended: those whose names are known, and the
// newest takeover. A call with more records than one read returns can be ended with these, but not run: its questions and
// steps are not known.
func loadNamed(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	takeover, err := s.Last(ctx, key.Private(events.RecordTakeover, AnyToken))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	epoch := 1
	var records []Record
	if err == nil {
		name, _ := subjects.ParseKey(takeover.Key)
		if n, errID := strconv.Atoi(name.ID); errID == nil {
			epoch = n
		}
		records = append(records, takeover)
	}
	found, err := s.LastOf(ctx, []string{
		key.Public(events.RecordCall), key.Public(events.RecordResponse), key.Public(events.RecordCancel), key.Private(events.RecordPark, strconv.Itoa(epoch)),
	})
	if err != nil {
		return nil, err
	}
	t := newTurn(key, inOrder(records, found))
	t.oversized = true
	return t, nil
}

// inOrder appends the records that were found and sorts all by their sequences.
func inOrder(records []Record, found []*Record) []Record {
	for _, r := range found {
		if r != nil {
			records = append(records, *r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return records
}

// Claims returns the claim of each turn, nil for one that is not claimed, as the leader knows them. Reads by name cost the
// server a fraction of a [Journal.Load], which lists the names of all records.
func (j *Journal) Claims(ctx context.Context, keys ...subjects.Key) ([]*Record, error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Public(events.RecordCall)
	}
	return j.store.LastOf(ctx, names)
}

// Leases returns the leases of the newest epochs of turns, as the leader knows them. Turns that are not claimed have none.
func (j *Journal) Leases(ctx context.Context, keys ...subjects.Key) ([]Lease, error) {
	claims, err := j.Claims(ctx, keys...)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		records := []Record{*claim}
		switch takeover, err := j.last(ctx, keys[i].Private(events.RecordTakeover, AnyToken)); {
		case err != nil:
			return nil, err
		case takeover != nil && !takeover.Former(generationOf(claim)):
			records = append(records, *takeover)
		}
		leases = append(leases, newTurn(keys[i], records).Lease)
	}
	return leases, nil
}

// Ended reports whether a turn has its response, as the leader knows it.
func (j *Journal) Ended(ctx context.Context, key subjects.Key) (bool, error) {
	response, err := j.ResponseOf(ctx, key)
	return response != nil, err
}

// ResponseOf returns the response of a turn, as the leader knows it; nil if it has not ended.
func (j *Journal) ResponseOf(ctx context.Context, key subjects.Key) (*Record, error) {
	return j.currentRecord(ctx, key, key.Public(events.RecordResponse))
}

// AnswerStored reports whether the answer to a question was stored by an earlier delivery of a message, as the leader knows
// it. Such a message is what continues the turn, also while no takeover names it.
func (j *Journal) AnswerStored(ctx context.Context, key subjects.Key, id string, message Lease) (bool, error) {
	answer, err := j.currentRecord(ctx, key, key.Private(events.RecordAnswer, subjects.Token(id)))
	return answer != nil && answer.Meta.Lease.Same(message), err
}

// currentRecord returns a record of a turn by its name, as the leader knows it; nil if there is none, or only one of an
// earlier generation.
func (j *Journal) currentRecord(ctx context.Context, key subjects.Key, name string) (*Record, error) {
	found, err := j.store.LastOf(ctx, []string{key.OfTurn().Public(events.RecordCall), name})
	if err != nil || found[1] == nil || found[1].Former(generationOf(found[0])) {
		return nil, err
	}
	return found[1], nil
}

// last returns the record under a key, nil if there is none.
func (j *Journal) last(ctx context.Context, key string) (*Record, error) {
	r, err := j.store.Last(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	return &r, nil
}

// lastOf returns the record under each key, nil where there is none. The read is repeated until it succeeds or ctx ends.
func (j *Journal) lastOf(ctx context.Context, keys []string) (found []*Record, err error) {
	err = j.retryRead(ctx, func() error {
		found, err = j.store.LastOf(ctx, keys)
		return err
	})
	return found, err
}

// reload reads the turn of a run as it was when the run began or later. The read is repeated until it succeeds or ctx ends.
func (j *Journal) reload(ctx context.Context, h Hold) (t *Turn, err error) {
	err = j.retryRead(ctx, func() error {
		t, err = j.readSince(ctx, h.Key, h.Token, nil)
		return err
	})
	return t, err
}

// End returns the response of a turn, as the leader knows it, or [ErrNotFound].
func (j *Journal) End(ctx context.Context, key subjects.Key) (Record, error) {
	return j.store.Last(ctx, key.Public(events.RecordResponse))
}

// At returns the record with a sequence, as the leader knows it, or [ErrNotFound].
func (j *Journal) At(ctx context.Context, seq uint64) (Record, error) { return j.store.At(ctx, seq) }
