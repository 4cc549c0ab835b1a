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

// replacedOnce is a store whose next read by names is answered by a leader that was replaced before a sequence.
type replacedOnce struct {
	*storetest.Memory

	until uint64
}

func (s *replacedOnce) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	found, err := s.Memory.LastOf(ctx, keys)
	for i, r := range found {
		if s.until > 0 && r != nil && r.Seq > s.until {
			found[i] = nil
		}
	}
	s.until = 0
	return found, err
}

// R5: the winner of a race is decided by a read that shows the own success, and so every one before it.
func TestResponsesOfARaceAreReadAtLeastUpToTheOwnOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory()
		first := owner(t, s, "program")
		a, b := enters(t, s, first, "a", "none"), enters(t, s, first, "b", "none")
		second := nextOwner(t, s, 2).Hold
		endsStep(t, s, a, "first")
		mine, err := newJournal(s).EndStep(t.Context(), second.ForStep(b.Key.Call, "none"), []byte("second"))
		require.NoError(t, err)
		read := func(since uint64) ([]*idempotency.Record, error) {
			return newJournal(&replacedOnce{s, second.Token}).StepResponses(t.Context(), second, since, a.Key, b.Key)
		}
		responses, err := read(mine.Seq)
		require.NoError(t, err)
		require.Equal(t, "first", string(responses[0].Data))
		require.Equal(t, mine.Seq, responses[1].Seq)
		responses, err = read(0)
		require.NoError(t, err)
		require.Equal(t, []*idempotency.Record{nil, nil}, responses)
		_, err = read(mine.Seq + 1)
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
	require.NoError(t, newJournal(s).CloseSteps(t.Context(), h, 0, func(*idempotency.Call) ([]byte, error) { return nil, errLost }), "its steps are not known")
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
