package idempotency_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

// askedBySteps has the same question of several steps, as a park record names it.
func askedBySteps(ids ...string) (refs []idempotency.QuestionRef) {
	for _, id := range ids {
		refs = append(refs, idempotency.AskedBy(stepKey(id), "q")...)
	}
	return refs
}

// answerToStep answers the question of a step.
func answerToStep(id string, seq, delivery uint64) idempotency.Answer {
	a := answerTo("q", "yes", seq, delivery)
	a.Key = stepKey(id)
	return a
}

// The other step still waits, and its question stays open.
func TestQuestionsOfAStepThatHasEndedAreClosed(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "program")
		ended, other := enters(t, s, h, "ended", "replay"), enters(t, s, h, "other", "replay")
		asks(t, s, ended, "answered", "q", "late")
		asks(t, s, other, "q")
		answer := answerTo("answered", "yes", 2, 1)
		answer.Key = ended.Key
		require.Equal(t, idempotency.Accepted, answered(t, s, answer).Status)
		r, err := newJournal(s).EndStep(t.Context(), ended, []byte("done"))
		require.NoError(t, err)

		d := answered(t, s, answerToStep("ended", 3, 1))
		require.Equal(t, idempotency.Closed, d.Status, "it has ended, though its questions are not closed yet")
		require.Equal(t, idempotency.Done, d.Action)
		_, err = newJournal(s).ReadReply(t.Context(), ended, "q")
		require.ErrorIs(t, err, idempotency.ErrLost, "no answer is accepted any more, and a run that waits for one would wait for ever")
		reply, err := newJournal(s).ReadReply(t.Context(), other, "q")
		require.NoError(t, err)
		require.Equal(t, idempotency.Open, reply.Outcome)
		closes := func(reads int) error {
			return hasty(&outdated{s, h.Token, reads}).CloseQuestions(t.Context(), ended, r.Seq, nil, func(decided idempotency.Record) ([]byte, error) {
				return []byte(decided.Meta.Outcome), nil
			})
		}
		require.ErrorIs(t, closes(1<<20), idempotency.ErrStale)
		require.NoError(t, closes(3))
		outcomes := map[string]string{}
		for _, q := range load(t, s).Questions() {
			if outcomes[q.Call.Call+" "+q.Token] = string(q.Outcome()); q.Ack != nil {
				require.Equal(t, string(q.Outcome()), q.Ack.Meta.Outcome)
			}
		}
		require.Equal(t, map[string]string{"s_ended answered": "answered", "s_ended q": "cancelled", "s_ended late": "cancelled", "s_other q": ""}, outcomes)
		_, err = newJournal(s).ReadReply(t.Context(), ended, "q")
		require.ErrorIs(t, err, idempotency.ErrLost, "a run of an earlier owner does not end the turn as cancelled")
		d = answered(t, s, answerToStep("ended", 4, 1))
		require.Equal(t, idempotency.TooLate, d.Status)
		require.Equal(t, idempotency.Cancelled, d.By)
		require.Equal(t, idempotency.Done, d.Action)
		require.Equal(t, idempotency.Accepted, answered(t, s, answerToStep("other", 5, 1)).Status)
	})
}

// parkedSteps is a program that was parked while its steps wait for an answer to a question of the same id each.
func parkedSteps(t *testing.T, s idempotency.Store, ids ...string) idempotency.Hold {
	t.Helper()
	h := owner(t, s, "program")
	for _, id := range ids {
		asks(t, s, enters(t, s, h, id, "replay"), "q")
	}
	parked, err := newJournal(s).Park(t.Context(), &h, askedBySteps(ids...), nil)
	require.NoError(t, err)
	require.True(t, parked)
	return h
}

func TestAnswerToAStepContinuesTheTurnAndTheOtherStepsWait(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		parkedSteps(t, s, "a", "b", "c")
		park, err := s.Last(t.Context(), key.Private("park", "1"))
		require.NoError(t, err)
		var named struct {
			Open []string `json:"open"`
		}
		require.NoError(t, json.Unmarshal(park.Data, &named))
		ask, _ := load(t, s).CallOf(stepKey("a")).Question("q")
		require.Equal(t, stepKey("a").Call+"."+ask.Token, named.Open[0])
		require.True(t, load(t, s).Parked())

		v := answered(t, s, answerToStep("b", 2, 1))
		require.Equal(t, idempotency.Accepted, v.Status)
		require.Equal(t, idempotency.Run, v.Action)
		require.Equal(t, key, v.Hold.Key, "it continues the turn")
		require.Equal(t, 2, v.Hold.Epoch)
		waits := func(turn *idempotency.Turn) (ids []string) {
			for _, step := range turn.Steps() {
				if turn.Waits(step) {
					ids = append(ids, step.Key.Call)
				}
			}
			return ids
		}
		require.Equal(t, []string{stepKey("a").Call, stepKey("c").Call}, waits(v.Turn))
		require.False(t, v.Turn.Waits(nil))
		decided, err := newJournal(s).Decided(t.Context(), v.Hold, askedBySteps("a", "c")...)
		require.NoError(t, err)
		require.False(t, decided)
		decided, err = newJournal(s).Decided(t.Context(), v.Hold, askedBySteps("a", "b")...)
		require.NoError(t, err)
		require.True(t, decided)

		require.Equal(t, idempotency.Signalled, answered(t, s, answerToStep("c", 3, 1)).Action, "it has an owner")
		parked, err := newJournal(s).Park(t.Context(), &v.Hold, askedBySteps("a", "c"), nil)
		require.NoError(t, err)
		require.False(t, parked, "it was woken")
		again := answered(t, s, answerToStep("b", 2, 2))
		require.Equal(t, idempotency.Run, again.Action, "its worker died")
		require.Empty(t, waits(again.Turn), "after a crash every step is judged by its effect")
		entry, err := calls(t, s, again.Hold, "a", "replay", again.Turn)
		require.NoError(t, err)
		require.NotNil(t, entry.Called)
	})
}

func TestAnswerToAStepThatDoesNotWaitContinuesNothing(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "program")
	asks(t, s, enters(t, s, h, "a", "replay"), "q")
	b := enters(t, s, h, "b", "replay")
	asks(t, s, b, "q")
	require.Equal(t, idempotency.Signalled, answered(t, s, answerToStep("b", 2, 1)).Action)
	takes(t, s, b, "q")
	parked, err := newJournal(s).Park(t.Context(), &h, askedBySteps("a"), nil)
	require.NoError(t, err)
	require.True(t, parked)
	require.Equal(t, idempotency.Done, answered(t, s, answerToStep("b", 3, 1)).Action, "the run had it before it parked")
	require.True(t, load(t, s).Parked(), "the answer to a question of the same id of another step does not count")
	require.Equal(t, idempotency.Early, answered(t, s, answerTo("q", "yes", 4, 1)).Status, "the turn's own call has asked nothing")
	require.Equal(t, idempotency.Done, resumed(t, s, resume(5, 1)).Action)
	v := answered(t, s, answerToStep("a", 6, 1))
	require.Equal(t, idempotency.Run, v.Action)
	require.False(t, v.Turn.Waits(v.Turn.CallOf(stepKey("b"))), "it was not parked with a question")
}

func TestSecretsOfStepsAreErasedWithTheTurn(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		keys, err := secrets.Parse([]byte(secrets.NewKey()))
		require.NoError(t, err)
		j, h := newJournal(s), owner(t, s, "program")
		step := enters(t, s, h, "a", "replay")
		asks(t, s, step, "q")
		answer := answerToStep("a", 2, 1)
		answer.Data, err = keys.Seal(idempotency.AnswerName(step.Key, "q"), []byte(`"swordfish"`))
		require.NoError(t, err)
		answered(t, s, answer)
		takes(t, s, step, "q")
		sealed, err := keys.Seal(idempotency.StepName(step.Key, "login"), []byte(`"token"`))
		require.NoError(t, err)
		_, err = j.Step(t.Context(), step, "login", sealed)
		require.NoError(t, err)
		endsStep(t, s, step, "done")
		n, err := j.Erase(t.Context(), key)
		require.NoError(t, err)
		require.Zero(t, n, "the turn has not ended")
		_, err = j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		n, err = j.Erase(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.False(t, load(t, s).Secret())
	})
}
