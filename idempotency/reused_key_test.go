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
func TestKeyOfADataIsChosenOnce(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		first, other := dataOf("f1", 1), dataOf("f2", 2)
		reused := key.Reuse("", "turn", "f2")
		j := newJournal(s)
		p, err := j.ChosenKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.False(t, p.Reused, "nothing is decided")
		d := decide(t, s, first)
		p, err = j.ChooseKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.True(t, p.Reused)
		expire(d.Hold.Claim)
		for range 2 { // the plain key is free, and that changes nothing
			p, err = j.ChooseKey(t.Context(), other, reused)
			require.NoError(t, err)
			require.True(t, p.Reused)
		}
		p, err = j.ChosenKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.True(t, p.Reused)
	})
}

// F21: see docs/faults.md.
func TestKeyOfADataThatIsClaimedStaysWhenItsRecordExpires(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j, other := newJournal(s), dataOf("f2", 2)
		reused := key.Reuse("", "turn", "f2")
		decide(t, s, dataOf("f1", 1))
		_, err := j.ChooseKey(t.Context(), other, reused)
		require.NoError(t, err)
		record, err := s.Last(t.Context(), key.ReuseNote("f2"))
		require.NoError(t, err)
		claimed := other
		claimed.Key = reused
		require.Equal(t, idempotency.Run, decide(t, s, claimed).Action)
		expire(record.Seq)
		p, err := j.ChooseKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.True(t, p.Reused)
	})
}

// F21: see docs/faults.md.
func TestDataMovesToItsReusedKeyOnceAndOnlyByTheChoiceThatWasRead(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j, other := newJournal(s), dataOf("f2", 2)
		reused := key.Reuse("", "turn", "f2")
		early, err := j.ChooseKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.False(t, early.Reused)
		decide(t, s, dataOf("f1", 1)) // other data was faster
		require.Equal(t, idempotency.Conflict, decide(t, s, other).Action)
		require.NoError(t, j.MoveToReusedKey(t.Context(), other, early))
		require.Error(t, j.MoveToReusedKey(t.Context(), other, early), "another delivery has moved it")
		p, err := j.ChooseKey(t.Context(), other, reused)
		require.NoError(t, err)
		require.True(t, p.Reused)

		record, err := s.Last(t.Context(), key.ReuseNote("f2"))
		require.NoError(t, err)
		expire(record.Seq)
		require.Error(t, j.MoveToReusedKey(t.Context(), other, early), "the reuse record has expired, and with it what followed from it")
		_, err = s.Last(t.Context(), key.ReuseNote("f2"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	})
}

// F26: see docs/faults.md. A worker of a version without reuse records has claimed the data without one, or against it.
func TestDataRunsUnderTheKeyThatItHasClaimed(t *testing.T) {
	t.Parallel()
	plainKey, ownKey := func(*idempotency.Claim) {}, func(c *idempotency.Claim) { c.Key = key.Reuse("", "turn", "f2") }
	for name, test := range map[string]struct {
		first   bool // other data has the plain key when the key is chosen
		claimed func(c *idempotency.Claim)
		reused  bool
	}{
		"under its reused key, as decided": {first: true, claimed: ownKey, reused: true},
		"under the plain key, as decided":  {claimed: plainKey},
		"under its reused key":             {claimed: ownKey, reused: true},
		"under the plain key":              {first: true, claimed: plainKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
				t.Helper()
				j, other := newJournal(s), dataOf("f2", 2)
				reused := key.Reuse("", "turn", "f2")
				if test.first {
					d := decide(t, s, dataOf("f1", 1))
					_, err := j.ChooseKey(t.Context(), other, reused)
					require.NoError(t, err)
					expire(d.Hold.Claim)
				} else {
					_, err := j.ChooseKey(t.Context(), other, reused)
					require.NoError(t, err)
				}
				claimed := other
				test.claimed(&claimed)
				require.Equal(t, idempotency.Run, decide(t, s, claimed).Action)
				p, err := j.ChooseKey(t.Context(), other, reused)
				require.NoError(t, err)
				require.Equal(t, test.reused, p.Reused)
				p, err = j.ChosenKey(t.Context(), other, reused)
				require.NoError(t, err)
				require.Equal(t, test.reused, p.Reused)
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

func TestKeyOfADataCostsAReadAndAWriteAndAReadLater(t *testing.T) {
	t.Parallel()
	s := &counted{Memory: storetest.NewMemory()}
	j, c := newJournal(s), claim("unsafe", 1, 1)
	for _, want := range [][]int{{1, 1}, {0, 1}} {
		s.writes, s.flights = 0, 0
		choice, err := j.ChooseKey(t.Context(), c, key.Reuse("", "turn", c.Fingerprint))
		require.NoError(t, err)
		require.False(t, choice.Reused)
		require.Equal(t, want, []int{s.writes, s.flights}, "writes and flights of reads")
	}
}
