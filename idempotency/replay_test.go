package idempotency_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

// The acts of a run before its worker died: a = a is asked, A = a is answered, + = the tool has the answer, p = the turn is
// parked, and the next answer continues it.
func TestReplayToolIsEnteredAgainOnlyBeforeAnOpenQuestion(t *testing.T) {
	t.Parallel()
	for acts, want := range map[string]idempotency.Action{
		"": idempotency.EndTurn, "a": idempotency.Run, "aA": idempotency.Run, "aA+": idempotency.EndTurn,
		"aA+b": idempotency.Run, "aA+bB": idempotency.Run, "aA+bB+": idempotency.EndTurn, "aA+bB+c": idempotency.Run,
		"ab": idempotency.Run, "abA": idempotency.Run, "abA+": idempotency.EndTurn, "abB+": idempotency.EndTurn,
		"abA+B": idempotency.EndTurn, "abA+B+": idempotency.EndTurn, "abA+c": idempotency.Run,
		"abA+pB": idempotency.Run, "abB+pA": idempotency.Run, "abA+pB+": idempotency.EndTurn,
		"abpA": idempotency.Run, "abpA+": idempotency.EndTurn, "abpA+pB": idempotency.Run, "abpA+pB+": idempotency.EndTurn,
		"aA+bpB": idempotency.Run, "aA+bpB+": idempotency.EndTurn,
	} {
		s := storetest.NewMemory()
		h := owner(t, s, "replay")
		again := func() idempotency.Decision { return decide(t, s, claim("replay", 1, 2)) }
		open, last, parked := map[string]bool{}, "", false
		for i, act := range acts {
			switch {
			case act == 'p':
				require.True(t, parks(t, s, &h, slices.Collect(maps.Keys(open))...), acts)
				parked = true
			case act == '+':
				takes(t, s, h, last)
			case act >= 'a':
				asks(t, s, h, string(act))
				open[string(act)] = true
			default:
				last = strings.ToLower(string(act))
				delete(open, last)
				a := answerTo(last, "yes", uint64(10+i), 1)
				d := answered(t, s, a).Decision
				if !parked {
					continue
				}
				require.Equal(t, idempotency.Run, d.Action, acts)
				parked, h = false, d.Hold
				a.Lease.Delivery = 2
				again = func() idempotency.Decision { return answered(t, s, a).Decision }
			}
		}
		d := again()
		require.Equal(t, want, d.Action, "after %q", acts)
		if want == idempotency.EndTurn {
			require.Equal(t, events.CodeInterrupted, d.Code, acts)
		}
	}
}

func TestAnswerIsPassedToASecondRunByEffect(t *testing.T) {
	t.Parallel()
	for effect, handed := range map[string]bool{"replay": false, "keyed": true, "idempotent": true, "none": true} {
		s := storetest.NewMemory()
		first := owner(t, s, effect)
		asks(t, s, first, "a")
		second := decide(t, s, claim(effect, 1, 2)).Hold
		answered(t, s, answerTo("a", "yes", 2, 1))
		takes(t, s, first, "a")
		takes(t, s, first, "a") // and again
		err := newJournal(s).Take(t.Context(), second, "a")
		if handed {
			require.NoError(t, err, effect)
			continue
		}
		requireCode(t, events.CodeInterrupted, err)
		asks(t, s, first, "b")
		takes(t, s, second, "a") // it is code before an open question now
		answered(t, s, answerTo("b", "yes", 3, 1))
		takes(t, s, first, "b")
		requireCode(t, events.CodeInterrupted, newJournal(s).Take(t.Context(), second, "a"))
	}
}

func TestResumesAreNotCountedAsTakeovers(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	for i := range 2 * idempotency.DefaultMaxTakeovers {
		id := "q" + strconv.Itoa(i)
		asks(t, s, h, id)
		require.True(t, parks(t, s, &h, id))
		v := answered(t, s, answerTo(id, "yes", uint64(10+i), 1))
		require.Equal(t, idempotency.Run, v.Action)
		h = v.Hold
		takes(t, s, h, id)
	}
	asks(t, s, h, "last")
	again := answerTo("q19", "yes", 29, 2)
	require.Equal(t, idempotency.Run, answered(t, s, again).Action)
}

func TestStepIsStoredOnceAndReplayed(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j := newJournal(s)
		first := owner(t, s, "keyed")
		_, done, err := j.StepResult(t.Context(), first, "charge")
		require.NoError(t, err)
		require.False(t, done)
		got, err := j.Step(t.Context(), first, "charge", []byte("1"))
		require.NoError(t, err)
		require.Equal(t, "1", string(got))
		second := decide(t, s, claim("keyed", 1, 2)).Hold
		got, done, err = j.StepResult(t.Context(), second, "charge")
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, "1", string(got))
		got, err = j.Step(t.Context(), first, "charge", []byte("2"))
		require.NoError(t, err)
		require.Equal(t, "1", string(got), "the first stored result counts")
	})
}

func TestUnreadableRecordOfAQuestionFailsClosed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ask", "answer", "taken", "park"} {
		s := storetest.NewMemory()
		h := owner(t, s, "replay")
		r := idempotency.Record{Key: key.Private(kind, "q"), Err: errLost}
		switch kind {
		case "ask":
			r.Key = key.Public(kind, "q")
		case "park":
			r.Key = key.Private(kind, "1")
		}
		_, err := s.Create(t.Context(), r)
		require.NoError(t, err)
		j := newJournal(s)
		switch kind {
		case "ask", "answer":
			_, err = j.Ask(t.Context(), h, question("q"))
			requireCode(t, events.CodeStateCorrupt, err)
		case "taken":
			requireCode(t, events.CodeStateCorrupt, j.Take(t.Context(), h, "q"))
		case "park":
			_, err = j.Park(t.Context(), &h, idempotency.AskedBy(key, "q"), nil)
			require.ErrorIs(t, err, idempotency.ErrLost)
		}
		require.Equal(t, events.CodeStateCorrupt, decide(t, s, claim("replay", 1, 2)).Code, kind)
	}
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	_, err := s.Create(t.Context(), idempotency.Record{
		Key: key.Private("answer", "q"), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "perhaps"},
	})
	require.NoError(t, err)
	_, err = newJournal(s).ReadReply(t.Context(), h, "q")
	requireCode(t, events.CodeStateCorrupt, err)
}

// Each write of a turn with two questions, one answered in memory and one while it was parked, has an unknown outcome once.
func TestTurnWithQuestionsEndsWhicheverWriteHasNoAnswer(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		for nth := range 13 {
			synctest.Test(t, func(t *testing.T) {
				s := &unlucky{Memory: storetest.NewMemory(), nth: nth, stored: stored}
				h := owner(t, s, "replay")
				asks(t, s, h, "a", "b")
				require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("a", "yes", 2, 1)).Action)
				takes(t, s, h, "a")
				require.True(t, parks(t, s, &h, "b"))
				v := answered(t, s, answerTo("b", "yes", 3, 1))
				require.Equal(t, idempotency.Accepted, v.Status)
				require.Equal(t, idempotency.Run, v.Action)
				takes(t, s, v.Hold, "a", "b")
				done, err := newJournal(s).Finish(t.Context(), v.Hold, nil)
				require.NoError(t, err)
				require.True(t, done)
				require.Negative(t, s.nth, "write %d never came", nth)
				require.Len(t, load(t, s).Records, 14)
			})
		}
	}
}

// unlucky is a store in which one write has no answer.
type unlucky struct {
	*storetest.Memory

	nth    int
	stored bool
}

func (s *unlucky) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	s.nth--
	if s.nth != -1 {
		return s.Memory.Create(ctx, r)
	}
	if s.stored {
		_, _ = s.Memory.Create(ctx, r)
	}
	return 0, errLost
}

// The worker of an answer is killed at each of its writes, and the message is redelivered.
func TestAnswerFinishesWhatItsFirstDeliveryDidNot(t *testing.T) {
	t.Parallel()
	for writes := range 3 { // answer, ack, takeover
		s := storetest.NewMemory()
		h := owner(t, s, "replay")
		asks(t, s, h, "a")
		require.True(t, parks(t, s, &h, "a"))
		ctx, kill := context.WithCancel(t.Context())
		dying := &dying{Memory: s, left: writes, kill: kill}
		_, err := newJournal(dying).Answer(ctx, answerTo("a", "yes", 2, 1))
		require.Error(t, err)
		v := answered(t, s, answerTo("a", "yes", 2, 2))
		require.Equal(t, idempotency.Accepted, v.Status, "after %d writes", writes)
		require.Equal(t, idempotency.Run, v.Action)
		_, err = s.Last(t.Context(), key.Public("ack", "a"))
		require.NoError(t, err)
	}
}

// dying is the store of a worker that is killed after some writes.
type dying struct {
	*storetest.Memory

	left int
	kill func()
}

func (s *dying) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if s.left == 0 {
		s.kill()
	}
	s.left--
	return s.Memory.Create(ctx, r)
}
