package sweep_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// failingStore fails to read the records of some turns.
type failingStore struct {
	idempotency.Store

	fails func(subjects.Key) bool
	err   error
}

func (s *failingStore) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	if s.fails(key) {
		return nil, s.err
	}
	return s.Store.Scan(ctx, key, known)
}

func TestTurnsThatCannotBeReadKeepNoOtherFromBeingSwept(t *testing.T) {
	t.Parallel()
	const bad, good = 10, 30
	for name, c := range map[string]struct {
		err   error
		pages int // turns of a page
		most  int // sweeps until all others are found
		found int
	}{
		"the server fails, one page":    {errors.New("server error 10008"), 500, 2, good},
		"the server fails, small pages": {errors.New("server error 10008"), 3, 8, good},
		"they have too many records":    {idempotency.ErrTooMany, 500, 1, bad + good},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestSweep(t)
			b.orphans(bad + good)
			b.PageTurns = c.pages
			b.Store = &failingStore{b.Store, func(k subjects.Key) bool {
				n, err := strconv.Atoi(k.Turn[len("0-"):])
				return err == nil && n < bad
			}, c.err}
			found := map[string]bool{}
			for range c.most {
				_, _ = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, func(_ context.Context, f sweep.Finding) (uint64, error) {
					found[f.Key.String()] = true
					return 0, nil
				})
			}
			require.Len(t, found, c.found)
		})
	}
}

// TestNoResumeIsPublishedWhenItIsNotKnownWhetherTheLastOneWaits: the next sweep looks again.
func TestNoResumeIsPublishedWhenItIsNotKnownWhetherTheLastOneWaits(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(3)
	held, fails := b.LeaseHeld, false
	b.LeaseHeld = func(ctx context.Context, l idempotency.Lease) (bool, error) {
		if fails && l.Delivery == 0 { // a resume
			return false, errors.New("no answer")
		}
		return held(ctx, l)
	}
	for i := range 3 {
		fails = i == 1
		swept, err := b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, b.Resume)
		require.NoError(t, err)
		require.Equal(t, []int{3, 0, 0}[i], swept.Resumed)
		require.Equal(t, []int{0, 3, 0}[i], swept.Failed)
	}
}
