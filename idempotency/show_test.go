package idempotency_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

func TestWhatIsShownAgainShowsNothingNew(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		for _, event := range []string{"first", "second"} {
			require.NoError(t, newJournal(s).Show(t.Context(), h, "s1", []byte(event)))
			require.NoError(t, newJournal(s).Dismiss(t.Context(), h, "s1", []byte("dismiss "+event)))
		}
		for key, want := range map[string]string{h.Key.Public("show", "s1"): "first", h.Key.Public("dismiss", "s1"): "dismiss first"} {
			r, err := s.Last(t.Context(), key)
			require.NoError(t, err)
			require.NoError(t, r.Err)
			require.Equal(t, want, string(r.Data))
		}
	})
}

func TestSurfacesAreNotQuestions(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	require.NoError(t, newJournal(s).Show(t.Context(), h, "s1", []byte("shown")))
	require.NoError(t, newJournal(s).Dismiss(t.Context(), h, "s1", []byte("gone")))
	turn, err := newJournal(s).Load(t.Context(), h.Key)
	require.NoError(t, err)
	require.Empty(t, turn.Questions())
	require.Empty(t, openQuestions(turn))
	_, found := turn.Question("s1")
	require.False(t, found)
	require.Equal(t, idempotency.EndTurn, decide(t, s, claim("replay", 1, 2)).Action, "nothing that is shown keeps a tool from having begun")
}

func TestReaderSeesHowEachQuestionWasDecided(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "b", "a", "c/d")
		load := func() *idempotency.Turn {
			turn, err := newJournal(s).Load(t.Context(), h.Key)
			require.NoError(t, err)
			return turn
		}
		tokens := func(questions []idempotency.QuestionState) (all []string) {
			for _, q := range questions {
				all = append(all, q.Token)
			}
			return all
		}
		require.Equal(t, []string{"b", "a", "c=2Fd"}, tokens(openQuestions(load())), "in the order in which they were asked")

		v, err := newJournal(s).Answer(t.Context(), answerTo("b", "yes", 2, 1))
		require.NoError(t, err)
		require.Equal(t, idempotency.Accepted, v.Status)
		turn := load()
		require.Equal(t, []string{"a", "c=2Fd"}, tokens(openQuestions(turn)))
		require.Equal(t, []string{"b", "a", "c=2Fd"}, tokens(turn.Questions()))
		q, found := turn.Question("b")
		require.True(t, found)
		require.Equal(t, idempotency.Answered, q.Outcome())
		require.Equal(t, "b?", string(q.Ask.Data))
		require.NotNil(t, q.Ack)
		require.Nil(t, q.Taken)
		require.Nil(t, q.Dismissed)

		require.NoError(t, newJournal(s).Take(t.Context(), h, "b"))
		require.NoError(t, newJournal(s).Dismiss(t.Context(), h, "b", []byte("gone")))
		q, _ = load().Question("b")
		require.NotNil(t, q.Taken)
		require.Equal(t, "gone", string(q.Dismissed.Data))

		q, found = turn.Question("c/d")
		require.True(t, found)
		require.Equal(t, idempotency.Open, q.Outcome())
		_, found = turn.Question("never")
		require.False(t, found)

		_, err = newJournal(s).Finish(t.Context(), h, []byte("end"))
		require.NoError(t, err)
		require.Empty(t, openQuestions(load()), "a turn that has ended takes no answers")
		require.Len(t, load().Questions(), 3)
	})
}

// openQuestions returns the questions that can still be answered: undecided, in a turn that has not ended.
func openQuestions(turn *idempotency.Turn) []idempotency.QuestionState {
	if turn.Response != nil {
		return nil
	}
	return slices.DeleteFunc(turn.Questions(), func(q idempotency.QuestionState) bool { return q.Outcome() != idempotency.Open })
}

func TestQuestionWhoseDecisionCannotBeReadIsNotOpen(t *testing.T) {
	t.Parallel()
	q := idempotency.QuestionState{Answer: &idempotency.Record{Err: errors.New("damaged")}}
	require.NotEqual(t, idempotency.Open, q.Outcome())
	require.NotContains(t, []idempotency.Outcome{idempotency.Answered, idempotency.Expired, idempotency.Cancelled}, q.Outcome())
}

func TestShowThatCannotBeStoredReturnsAnError(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	require.ErrorIs(t, newJournal(refusing{s}).Show(t.Context(), h, "s1", []byte("shown")), idempotency.ErrRefused)
	require.ErrorIs(t, newJournal(refusing{s}).Dismiss(t.Context(), h, "s1", nil), idempotency.ErrRefused)
}

// refusing stores nothing.
type refusing struct{ idempotency.Store }

func (refusing) Create(context.Context, idempotency.Record) (uint64, error) {
	return 0, idempotency.ErrRefused
}
