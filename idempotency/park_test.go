package idempotency_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

func TestAnswerWakesAnOwnerInMemoryAndResumesAParkedTurn(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("a", "yes", 2, 1)).Action)
		require.False(t, parks(t, s, &h, "a", "b"), "it was woken")
		takes(t, s, h, "a")

		require.True(t, parks(t, s, &h, "b"))
		require.Equal(t, 2, h.Epoch, "it continued as the next epoch, to be able to park again")
		require.True(t, load(t, s).Parked())
		require.Equal(t, `"state"`, string(load(t, s).State()))
		require.Equal(t, idempotency.Duplicate, decide(t, s, claim("replay", 9, 1)).Action)
		require.Equal(t, idempotency.Done, decide(t, s, claim("replay", 1, 2)).Action, "its message, whose acknowledgement was lost")

		v := answered(t, s, answerTo("b", "no", 3, 1))
		require.Equal(t, idempotency.Run, v.Action)
		require.Equal(t, 3, v.Hold.Epoch)
		require.Equal(t, "replay", v.Hold.Effect)
		require.Equal(t, "f1", v.Hold.Fingerprint)
		require.Greater(t, v.Hold.Token, h.Token)
		require.Equal(t, lease(3, 1), load(t, s).Lease)
		takes(t, s, v.Hold, "a", "b")
		asks(t, s, v.Hold, "c")
		require.True(t, parks(t, s, &v.Hold, "c"))
		require.Equal(t, idempotency.Done, answered(t, s, answerTo("a", "yes", 4, 1)).Action, "repeated: it wakes no owner")
		require.Equal(t, idempotency.Duplicate, decide(t, s, claim("replay", 1, 3)).Action, "the turn's own message is not its lease")
	})
}

// spy does something just before a record is created.
type spy struct {
	idempotency.Store

	before map[string]func()
}

func (s *spy) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if f := s.before[r.Key]; f != nil {
		delete(s.before, r.Key)
		f()
	}
	return s.Store.Create(ctx, r)
}

func TestOwnerReadsAgainBeforeItParksAsTheNextEpoch(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		answered(t, s, answerTo("a", "yes", 2, 1))
		takes(t, s, h, "a")
		watched := &spy{s, map[string]func(){key.Private("takeover", "2"): func() {
			require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("b", "yes", 3, 1)).Action)
		}}}
		require.False(t, parks(t, watched, &h, "b"))
		require.Equal(t, 2, h.Epoch)
		takes(t, s, h, "b")
	})
}

func TestRunWhoseTurnIsTakenOverIsLost(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j := newJournal(s)
		first := owner(t, s, "replay")
		asks(t, s, first, "q")
		second := decide(t, s, claim("replay", 1, 2)).Hold
		_, err := j.Park(t.Context(), &first, idempotency.AskedBy(key, "q"), nil)
		require.ErrorIs(t, err, idempotency.ErrLost, "sealed")
		require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("q", "yes", 2, 1)).Action)
		takes(t, s, second, "q")
		require.ErrorIs(t, j.Take(t.Context(), first, "q"), idempotency.ErrLost)
		_, err = j.Finish(t.Context(), second, nil)
		require.NoError(t, err)
		_, err = j.ReadReply(t.Context(), first, "q")
		require.ErrorIs(t, err, idempotency.ErrLost, "the turn has ended")
	})
}

func TestWokenRunDoesNotContinueAsAnEpochOfAnotherWorker(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	first := owner(t, s, "replay")
	asks(t, s, first, "a", "b")
	answered(t, s, answerTo("a", "yes", 2, 1))
	require.Equal(t, 2, decide(t, s, claim("replay", 1, 2)).Hold.Epoch)
	_, err := newJournal(s).Park(t.Context(), &first, idempotency.AskedBy(key, "b"), nil)
	require.ErrorIs(t, err, idempotency.ErrLost)
}

func TestAnswerThatResumedATurnIsItsLease(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.True(t, parks(t, s, &h, "a", "b"))
		require.Equal(t, 2, answered(t, s, answerTo("a", "yes", 2, 1)).Hold.Epoch)
		require.Equal(t, idempotency.Leave, answered(t, s, answerTo("a", "yes", 2, 1)).Action, "the same delivery")
		d := answered(t, s, answerTo("a", "yes", 2, 2))
		require.Equal(t, idempotency.Run, d.Action, "its worker died")
		require.Equal(t, idempotency.Accepted, d.Status)
		require.Equal(t, 3, d.Hold.Epoch)
		require.Equal(t, idempotency.Leave, answered(t, s, answerTo("a", "yes", 2, 1)).Action, "a delivery that came late")
		takes(t, s, d.Hold, "a")
		require.True(t, parks(t, s, &d.Hold, "b"))
		require.Equal(t, idempotency.Done, answered(t, s, answerTo("a", "yes", 2, 3)).Action, "it parked again, and its acknowledgement was lost")
		require.True(t, load(t, s).Parked())
	})
}

func TestOneOfTwoAnswersResumesAParkedTurnAndTheOtherFindsItsOwner(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.True(t, parks(t, s, &h, "a", "b"))
		var wg sync.WaitGroup
		actions := make([]idempotency.Action, 2)
		for i, id := range []string{"a", "b"} {
			wg.Go(func() {
				v, err := newJournal(s).Answer(t.Context(), answerTo(id, "yes", uint64(2+i), 1))
				if err != nil {
					t.Errorf("answer: %v", err)
				}
				actions[i] = v.Action
			})
		}
		wg.Wait()
		require.ElementsMatch(t, []idempotency.Action{idempotency.Run, idempotency.Signalled}, actions)
	})
}

func TestAnswerResumesAParkedTurnThoughALostOwnerHasTakenIt(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "idempotent")
		second := decide(t, s, claim("idempotent", 1, 2)).Hold
		asks(t, s, second, "a")
		require.True(t, parks(t, s, &second, "a"))
		lost := &spy{s, map[string]func(){key.Public("ack", "a"): func() { takes(t, s, first, "a") }}}
		v, err := newJournal(lost).Answer(t.Context(), answerTo("a", "yes", 2, 1))
		require.NoError(t, err)
		require.Equal(t, idempotency.Run, v.Action)
		takes(t, s, v.Hold, "a")
	})
}

func TestStateOfAParkedTurnIsJSON(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "keyed")
	asks(t, s, h, "a")
	_, err := newJournal(s).Park(t.Context(), &h, idempotency.AskedBy(key, "a"), []byte("{"))
	require.ErrorContains(t, err, "not valid JSON")
	require.Nil(t, load(t, s).State())
}

func TestCancelClosesAllQuestionsAndPassesNothingToTheTool(t *testing.T) {
	t.Parallel()
	cancel := claim("", 5, 1)
	cancel.Fingerprint, cancel.RejectCode, cancel.Signal, cancel.Ack = "", string(events.CodeCancelled), true, answerTo("", "", 0, 0).Ack
	for _, parked := range []bool{true, false} {
		stores(t, func(t *testing.T, s idempotency.Store) {
			t.Helper()
			h := owner(t, s, "replay")
			asks(t, s, h, "a", "b", "c")
			answered(t, s, answerTo("c", "yes", 2, 1))
			takes(t, s, h, "c")
			want := idempotency.Signalled
			if parked {
				require.True(t, parks(t, s, &h, "a", "b"))
				want = idempotency.EndTurn
			}
			require.NoError(t, newJournal(s).Cancel(t.Context(), cancel, []byte(`{}`)))
			d := decide(t, s, cancel)
			require.Equal(t, want, d.Action)
			if parked {
				require.Equal(t, events.CodeCancelled, d.Code)
			}
			for _, id := range []string{"a", "b"} {
				r, err := s.Last(t.Context(), key.Public("ack", id))
				require.NoError(t, err)
				require.Equal(t, "cancelled", string(r.Data))
				v := answered(t, s, answerTo(id, "yes", 6, 1))
				require.Equal(t, idempotency.TooLate, v.Status)
				require.Equal(t, idempotency.Cancelled, v.By)
			}
			j := newJournal(s)
			_, err := j.ReadReply(t.Context(), h, "a")
			requireCode(t, events.CodeCancelled, err)
			_, err = j.Ask(t.Context(), h, question("d"))
			requireCode(t, events.CodeCancelled, err)
			_, err = s.Last(t.Context(), key.Public("ask", "d"))
			require.ErrorIs(t, err, idempotency.ErrNotFound)
		})
	}
}

func TestOwnerThatParksFindsTheCancelThatWokeIt(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "keyed")
	asks(t, s, h, "a")
	cancel := claim("", 5, 1)
	cancel.RejectCode, cancel.Signal, cancel.Fingerprint = string(events.CodeCancelled), true, ""
	require.NoError(t, newJournal(s).Cancel(t.Context(), cancel, nil))
	require.Equal(t, idempotency.Signalled, decide(t, s, cancel).Action)
	_, err := newJournal(s).Park(t.Context(), &h, idempotency.AskedBy(key, "a"), nil)
	requireCode(t, events.CodeCancelled, err)
}

func TestWhatCannotBeWokenIsNotParked(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "unsafe")
	asks(t, s, h, "a")
	_, err := newJournal(s).Park(t.Context(), &h, idempotency.AskedBy(key, "a"), nil)
	require.ErrorContains(t, err, "wait in memory")
	require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("a", "yes", 2, 1)).Action)
	require.Equal(t, events.CodeInterrupted, decide(t, s, claim("unsafe", 1, 2)).Code)
	s = storetest.NewMemory()
	h = owner(t, s, "keyed")
	_, err = newJournal(s).Park(t.Context(), &h, nil, nil)
	require.ErrorContains(t, err, "no question is open")
}

func TestSweepTakesAParkedTurnWhoseAnswerLostItsMessageAndNoOther(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	asks(t, s, h, "a")
	require.True(t, parks(t, s, &h, "a"))
	require.Equal(t, idempotency.Done, resumed(t, s, resume(7, 1)).Action)
	_, err := s.Create(t.Context(), idempotency.Record{
		Key: key.Private("answer", "a"), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "answered"},
	})
	require.NoError(t, err)
	require.False(t, load(t, s).Parked())
	d := resumed(t, s, resume(8, 1))
	require.Equal(t, idempotency.Run, d.Action)
	takes(t, s, d.Hold, "a")
	require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("a", "", 9, 1)).Action, "it comes after all")
}

func TestAnswerThatDoesNotCountClosesTheQuestionAndWakesNoOwner(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a")
		require.True(t, parks(t, s, &h, "a"))
		ctx, kill := context.WithCancel(t.Context())
		dies := &spy{s, map[string]func(){key.Public("ack", "a"): kill}}
		_, err := newJournal(dies).Answer(ctx, answerTo("a", "yes", 2, 1))
		require.ErrorIs(t, err, context.Canceled)
		late := answered(t, s, answerTo("a", "no", 3, 1))
		require.Equal(t, idempotency.TooLate, late.Status)
		require.Equal(t, idempotency.Done, late.Action)
		r, err := s.Last(t.Context(), key.Public("ack", "a"))
		require.NoError(t, err)
		require.Equal(t, "answered", string(r.Data))
		require.Equal(t, idempotency.Run, answered(t, s, answerTo("a", "yes", 2, 2)).Action)
	})
}

// stale is a store whose next scan does not see one record.
type stale struct {
	*storetest.Memory

	hidden string
}

func (s *stale) Scan(ctx context.Context, k subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Memory.Scan(ctx, k, known)
	records = slices.DeleteFunc(records, func(r idempotency.Record) bool { return r.Key == s.hidden })
	s.hidden = ""
	return records, err
}

// Found by simulation: the deadline of a question had passed, and a read did not show that its
// answer was stored and held the turn.
func TestRedeliveredAnswerThatIsTheLeaseIsNotRefusedByOneRead(t *testing.T) {
	t.Parallel()
	s := &stale{Memory: storetest.NewMemory()}
	h := owner(t, s, "replay")
	asks(t, s, h, "a")
	require.True(t, parks(t, s, &h, "a"))
	require.Equal(t, idempotency.Run, answered(t, s, answerTo("a", "yes", 2, 1)).Action)
	again := answerTo("a", "yes", 2, 2)
	again.Check = func(idempotency.Record) error { return errLost }
	s.hidden = key.Private("answer", "a")
	v := answered(t, s, again)
	require.Equal(t, idempotency.Invalid, v.Status)
	require.Equal(t, idempotency.Run, v.Action)
}
