package idempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
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
		p, err := j.Placed(t.Context(), other, own)
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
		p, err = j.Placed(t.Context(), other, own)
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

// F26: see docs/faults.md. A worker of a version that knows no place records has claimed the data without one, or against it.
func TestPlaceOfADataIsWhereItIsClaimed(t *testing.T) {
	t.Parallel()
	plainKey, ownKey := func(*idempotency.Claim) {}, func(c *idempotency.Claim) { c.Key = key.Reuse("", "turn", "f2") }
	for name, test := range map[string]struct {
		first   bool // other data has the plain key when the place is decided
		claimed func(c *idempotency.Claim)
		own     bool
	}{
		"under its own key, as decided":   {first: true, claimed: ownKey, own: true},
		"under the plain key, as decided": {claimed: plainKey},
		"under its own key":               {claimed: ownKey, own: true},
		"under the plain key":             {first: true, claimed: plainKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
				t.Helper()
				j, other := newJournal(s), dataOf("f2", 2)
				own := key.Reuse("", "turn", "f2")
				if test.first {
					d := decide(t, s, dataOf("f1", 1))
					_, err := j.Place(t.Context(), other, own)
					require.NoError(t, err)
					expire(d.Hold.Claim)
				} else {
					_, err := j.Place(t.Context(), other, own)
					require.NoError(t, err)
				}
				claimed := other
				test.claimed(&claimed)
				require.Equal(t, idempotency.Run, decide(t, s, claimed).Action)
				p, err := j.Place(t.Context(), other, own)
				require.NoError(t, err)
				require.Equal(t, test.own, p.Own)
				p, err = j.Placed(t.Context(), other, own)
				require.NoError(t, err)
				require.Equal(t, test.own, p.Own)
			})
		})
	}
}

// counted counts what a journal asks of its store.
type counted struct {
	*storetest.Memory

	writes, flights int
}

func (c *counted) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	c.flights++
	return c.Memory.Scan(ctx, key, known)
}

func (c *counted) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	c.writes++
	return c.Memory.Create(ctx, r)
}

func (c *counted) Last(ctx context.Context, key string) (idempotency.Record, error) {
	c.flights++
	return c.Memory.Last(ctx, key)
}

func (c *counted) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	c.flights++
	found := make([]*idempotency.Record, len(keys))
	for n, key := range keys {
		if r, err := c.Memory.Last(ctx, key); err == nil {
			found[n] = &r
		}
	}
	return found, nil
}

func TestPlaceOfADataCostsAFlightAndAWriteAndAFlightLater(t *testing.T) {
	t.Parallel()
	s := &counted{Memory: storetest.NewMemory()}
	j, c := newJournal(s), claim("unsafe", 1, 1)
	for _, want := range [][]int{{1, 1}, {0, 1}} {
		s.writes, s.flights = 0, 0
		place, err := j.Place(t.Context(), c, key.Reuse("", "turn", c.Fingerprint))
		require.NoError(t, err)
		require.False(t, place.Own)
		require.Equal(t, want, []int{s.writes, s.flights}, "writes and flights of reads")
	}
}
