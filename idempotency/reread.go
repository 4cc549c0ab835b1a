package idempotency

import (
	"context"
	"slices"

	"github.com/oneturn/oneturn/subjects"
)

// maxRereads bounds how often a read that must be stale is repeated, [unknownPause] apart: a
// leader that was replaced answers until it learns of that, which takes milliseconds.
const maxRereads = 20

// readSince reads a turn in which the record with a sequence is stored. A leader that was
// replaced and does not know it yet answers with what the journal held before; such a read lacks
// the record and is repeated. One that has the record has all that was stored before it, because
// the names of the records come in one response. Earlier is an earlier read of the turn, or nil.
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

// holds reports whether the record with a sequence was read; 0 stands for none.
func (t *Turn) holds(seq uint64) bool {
	return seq == 0 || slices.ContainsFunc(t.Records, func(r Record) bool { return r.Seq == seq })
}
