package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
)

func dataOf(fingerprint string, seq uint64) idempotency.Claim {
	c := claim("unsafe", seq, 1)
	c.Fingerprint = fingerprint
	return c
}

// F21: see docs/faults.md.
func TestPlaceOfADataIsDecidedOnce(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		first, other := dataOf("f1", 1), dataOf("f2", 2)
		own := key.Reuse("", "turn", "f2")
		j := newJournal(s)
		p, err := j.Placed(t.Context(), other)
		require.NoError(t, err)
		require.False(t, p.Own, "nothing is decided")
		d := decide(t, s, first)
		p, err = j.Place(t.Context(), other, own)
		require.NoError(t, err)
		require.True(t, p.Own)
		expire(d.Hold.Claim)
		for range 2 { // the plain key is free, and that changes nothing
			p, err = j.Place(t.Context(), other, own)
			require.NoError(t, err)
			require.True(t, p.Own)
		}
		p, err = j.Placed(t.Context(), other)
		require.NoError(t, err)
		require.True(t, p.Own)
	})
}

// F21: see docs/faults.md.
func TestPlaceOfADataThatIsClaimedStaysWhenItsRecordExpires(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j, other := newJournal(s), dataOf("f2", 2)
		own := key.Reuse("", "turn", "f2")
		decide(t, s, dataOf("f1", 1))
		_, err := j.Place(t.Context(), other, own)
		require.NoError(t, err)
		place, err := s.Last(t.Context(), key.ReuseNote("f2"))
		require.NoError(t, err)
		claimed := other
		claimed.Key = own
		require.Equal(t, idempotency.Run, decide(t, s, claimed).Action)
		expire(place.Seq)
		p, err := j.Place(t.Context(), other, own)
		require.NoError(t, err)
		require.True(t, p.Own)
	})
}

// F21: see docs/faults.md.
func TestDataMovesOutOfThePlainKeyOnceAndOnlyFromThePlaceItHas(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j, other := newJournal(s), dataOf("f2", 2)
		own := key.Reuse("", "turn", "f2")
		early, err := j.Place(t.Context(), other, own)
		require.NoError(t, err)
		require.False(t, early.Own)
		decide(t, s, dataOf("f1", 1)) // other data was faster
		require.Equal(t, idempotency.Conflict, decide(t, s, other).Action)
		require.NoError(t, j.MoveOut(t.Context(), other, early))
		require.Error(t, j.MoveOut(t.Context(), other, early), "another delivery has moved it")
		p, err := j.Place(t.Context(), other, own)
		require.NoError(t, err)
		require.True(t, p.Own)

		place, err := s.Last(t.Context(), key.ReuseNote("f2"))
		require.NoError(t, err)
		expire(place.Seq)
		require.Error(t, j.MoveOut(t.Context(), other, early), "its place has expired, and with it all that followed from it")
		_, err = s.Last(t.Context(), key.ReuseNote("f2"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	})
}
