package idempotency_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// outdated is a store of which some reads are answered by a leader that was replaced: they show nothing after a sequence.
type outdated struct {
	idempotency.Store

	until uint64
	reads int
}

func (s *outdated) stale() bool {
	s.reads--
	return s.reads >= 0
}

func (s *outdated) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Store.Scan(ctx, key, known)
	if s.stale() {
		records = slices.DeleteFunc(slices.Clone(records), func(r idempotency.Record) bool { return r.Seq > s.until })
	}
	return records, err
}

func (s *outdated) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	found, err := s.Store.LastOf(ctx, keys)
	if s.stale() {
		for i, r := range found {
			if r != nil && r.Seq > s.until {
				found[i] = nil
			}
		}
	}
	return found, err
}

func TestStepsThatTheOwnerHasCalledAreClosedHoweverStaleTheReadIs(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "program")
		entry, err := calls(t, s, h, "a", "none", nil)
		require.NoError(t, err)
		closes := func(reads int) error {
			_, err := hasty(&outdated{s, h.Token, reads}).CloseSteps(t.Context(), h, entry.Seq, func(*idempotency.Call) ([]byte, error) { return []byte("closed"), nil })
			return err
		}
		require.ErrorIs(t, closes(1<<20), idempotency.ErrStale)
		require.Empty(t, responseOf(t, s, stepKey("a")))
		require.NoError(t, closes(3))
		require.Equal(t, "closed", responseOf(t, s, stepKey("a")))
	})
}

// A step of an earlier owner may have ended after the turn was taken over.
func TestStepThatHasEndedIsNotEnteredAgainForAStaleRead(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "program")
		ended := enters(t, s, first, "ended", "idempotent")
		d := nextOwner(t, s, 2)
		endsStep(t, s, ended, "done")
		newest := enters(t, s, d.Hold, "b", "none")
		r, err := newJournal(s).EndStep(t.Context(), newest, []byte("done"))
		require.NoError(t, err)
		enter := func(reads int) (idempotency.StepEntry, error) {
			return hasty(&outdated{s, d.Hold.Token, reads}).Enter(t.Context(), d.Hold.ForStep(ended.Key.Call, "idempotent"), idempotency.StepCall{Known: d.Turn, Since: r.Seq})
		}
		_, err = enter(1 << 20)
		require.ErrorIs(t, err, idempotency.ErrStale)
		entry, err := enter(3)
		require.NoError(t, err)
		require.Equal(t, "done", string(entry.Response.Data))
		require.Equal(t, "called by "+first.Nonce, string(entry.Called.Data))
		require.Equal(t, entry.Called.Seq, entry.Seq)
	})
}

func TestStepOfATurnThatHasEndedIsNotEntered(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "program")
		enters(t, s, first, "a", "none")
		d := nextOwner(t, s, 2)
		_, err := newJournal(s).Finish(t.Context(), first, []byte("ended"))
		require.NoError(t, err)
		_, err = calls(t, s, d.Hold, "a", "none", d.Turn)
		require.ErrorIs(t, err, idempotency.ErrLost)
	})
}
