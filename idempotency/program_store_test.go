package idempotency_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// R5: the winner of a race is decided by a read that shows the own success, and so every one before it.
func TestStepsOfARaceAreReadAtLeastUpToTheOwnSuccess(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "program")
		a, b := enters(t, s, first, "a", "none"), enters(t, s, first, "b", "none")
		d := nextOwner(t, s, 2)
		endsStep(t, s, a, "first")
		mine, err := newJournal(s).EndStep(t.Context(), d.Hold.ForStep(b.Key.Call, "none"), []byte("second"))
		require.NoError(t, err)
		read := func(reads int) ([]*idempotency.Call, error) {
			return hasty(&outdated{s, d.Hold.Token, reads}).ReadSteps(t.Context(), d.Hold, mine.Seq, d.Turn, a.Key, b.Key, stepKey("c"))
		}
		steps, err := read(3)
		require.NoError(t, err)
		require.Equal(t, "first", string(steps[0].Response.Data))
		require.Equal(t, "called by "+first.Nonce, string(steps[0].Called.Data))
		require.Equal(t, mine.Seq, steps[1].Response.Seq)
		require.Nil(t, steps[2])
		_, err = read(1 << 20)
		require.ErrorIs(t, err, idempotency.ErrStale)
	})
}

// full is a store in which the turn has more records than one read returns.
type full struct{ *storetest.Memory }

func (full) Scan(context.Context, subjects.Key, []idempotency.Record) ([]idempotency.Record, error) {
	return nil, idempotency.ErrTooMany
}

func TestProgramWithMoreRecordsThanOneReadReturnsEnds(t *testing.T) {
	t.Parallel()
	s := full{storetest.NewMemory()}
	h := owner(t, s, "program")
	enters(t, s, h, "a", "none")
	_, err := newJournal(s).CloseSteps(t.Context(), h, 0, func(*idempotency.Call) ([]byte, error) { return nil, errLost })
	require.NoError(t, err, "its steps are not known")
	d := decide(t, s, claim("program", 1, 2))
	require.Equal(t, events.CodeTooLarge, d.Code)
	stored, err := newJournal(s).Finish(t.Context(), d.Hold, nil)
	require.NoError(t, err)
	require.True(t, stored)
}

func TestWritesOfAProgramWithUnknownOutcomeAreRecognised(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]failing{"stored, acknowledgement lost": {after: 2}, "never arrived": {before: 3}, "rival in flight": {before: 3, wrong: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &failing{Memory: storetest.NewMemory()}
				h := owner(t, s, "program")
				fails := func() { s.after, s.before, s.wrong = f.after, f.before, f.wrong }
				fails()
				r, err := newJournal(s).StoreProgram(t.Context(), h, []byte("mine"))
				require.NoError(t, err)
				require.Equal(t, "mine", string(r.Data))
				require.Equal(t, uint64(2), r.Seq)
				fails()
				step := enters(t, s, h, "a", "unsafe")
				fails()
				endsStep(t, s, step, "done")
				require.Equal(t, []string{"program", "tool_call", "tool_response"}, kindsOf(load(t, s))[1:])
			})
		})
	}
}

// kindsOf returns the kinds of the records of a turn in their order.
func kindsOf(turn *idempotency.Turn) []string {
	kinds := make([]string, len(turn.Records))
	for i := range turn.Records {
		k, _ := subjects.ParseKey(turn.Records[i].Key)
		kinds[i] = k.Kind
	}
	return slices.Clip(kinds)
}
