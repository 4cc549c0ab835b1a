package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/turntest"
)

// stores runs a test on the store in memory and on a real server.
func stores(t *testing.T, test func(t *testing.T, s idempotency.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, idempotency.NewMemory())
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		nc := turntest.NewServer(t).Connect()
		test(t, newKV(t, nc, bucket(t, nc)))
	})
}

func lease(seq, delivery uint64) idempotency.Lease {
	return idempotency.Lease{Stream: "IN", Seq: seq, Delivery: delivery}
}

// owner is a run of the turn that message 1 has claimed.
func owner(t *testing.T, s idempotency.Store, effect string) idempotency.Hold {
	t.Helper()
	d := decide(t, s, claim(effect, 1, 1))
	require.Equal(t, idempotency.Run, d.Action)
	return d.Hold
}

func asks(t *testing.T, s idempotency.Store, h idempotency.Hold, ids ...string) {
	t.Helper()
	for _, id := range ids {
		reply, err := newJournal(s).Ask(t.Context(), h, question(id))
		require.NoError(t, err)
		require.Equal(t, idempotency.Open, reply.Outcome)
	}
}

func question(id string) idempotency.Question {
	return idempotency.Question{ID: id, Digest: "digest of " + id, Event: []byte(id + "?")}
}

// says is an answer as message seq brings it.
func says(id, value string, seq, delivery uint64) idempotency.Answer {
	return idempotency.Answer{
		Key: key, ID: id, Lease: lease(seq, delivery), Outcome: idempotency.Answered, Digest: value, Data: []byte(value),
		Check: func(idempotency.Record) error { return nil },
		Ack:   func(r idempotency.Record) ([]byte, error) { return []byte(r.Meta.Verdict), nil },
	}
}

func expires(id string, seq uint64) idempotency.Answer {
	a := says(id, "", seq, 1)
	a.Outcome, a.Check = idempotency.Expired, nil
	return a
}

func answered(t *testing.T, s idempotency.Store, a idempotency.Answer) idempotency.Verdicted {
	t.Helper()
	v, err := newJournal(s).Answer(t.Context(), a)
	require.NoError(t, err)
	return v
}

func parks(t *testing.T, s idempotency.Store, h *idempotency.Hold, open ...string) bool {
	t.Helper()
	parked, err := newJournal(s).Park(t.Context(), h, open, []byte(`"state"`))
	require.NoError(t, err)
	return parked
}

func takes(t *testing.T, s idempotency.Store, h idempotency.Hold, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, newJournal(s).Take(t.Context(), h, id))
	}
}

func requireCode(t *testing.T, code events.Code, err error) {
	t.Helper()
	var coded *events.Error
	require.ErrorAs(t, err, &coded)
	require.Equal(t, code, coded.Code)
}

func TestQuestionsAndStepsCanHaveAnyName(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		for i, name := range []string{"Which plan, please? *.>", "", "-", strings.Repeat("long ", 100)} {
			asks(t, s, h, name)
			require.Equal(t, idempotency.Accepted, answered(t, s, says(name, "yes", uint64(2+i), 1)).Verdict)
			takes(t, s, h, name)
			_, err := newJournal(s).Step(t.Context(), h, name, []byte(name))
			require.NoError(t, err)
			got, done, err := newJournal(s).StepResult(t.Context(), h, name)
			require.NoError(t, err)
			require.True(t, done)
			require.Equal(t, name, string(got))
		}
	})
}

// Example is a tool that asks a person, and the answer that comes when its worker has let the
// turn go. Any worker goes on.
func Example() {
	ctx := context.Background()
	store := idempotency.NewMemory()

	// The owner claims the turn, enters the tool, and the tool asks.
	first := idempotency.New(store, "worker-1", idempotency.Options{})
	claimed, _ := first.Claim(ctx, idempotency.Claim{Key: key, Lease: lease(1, 1), Effect: "replay"})
	hold := claimed.Hold
	approve := idempotency.Question{ID: "approve", Digest: "d1", Event: []byte(`{"type":"chat.tool_call"}`)}
	reply, _ := first.Ask(ctx, hold, approve)
	fmt.Println("open:", reply.Outcome == idempotency.Open)
	parked, _ := first.Park(ctx, &hold, []string{"approve"}, []byte(`"the arguments"`))
	fmt.Println("parked, message acknowledged:", parked)

	// The answer comes to another worker.
	second := idempotency.New(store, "worker-2", idempotency.Options{})
	told, _ := second.Answer(ctx, idempotency.Answer{
		Key: key, ID: "approve", Lease: lease(2, 1), Outcome: idempotency.Answered, Digest: "yes", Data: []byte(`"yes"`),
		Check: func(idempotency.Record) error { return nil },
		Ack:   func(idempotency.Record) ([]byte, error) { return []byte(`{"type":"chat.tool_call_ack"}`), nil },
	})
	fmt.Println(told.Verdict, "and", told.Action, "as epoch", told.Hold.Epoch, "with", string(told.Turn.State()))

	// Its run enters the tool again, which comes to the same question and finds it answered.
	reply, _ = second.Ask(ctx, told.Hold, approve)
	err := second.Take(ctx, told.Hold, "approve")
	fmt.Println(reply.Outcome, string(reply.Data), err)
	stored, _ := second.Finish(ctx, told.Hold, []byte(`{"type":"chat.tool_response"}`))
	fmt.Println("response stored:", stored)
	// Output:
	// open: true
	// parked, message acknowledged: true
	// accepted and run as epoch 2 with "the arguments"
	// answered "yes" <nil>
	// response stored: true
}

func TestQuestionIsAskedOnceByHoweverManyRuns(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "replay")
		asks(t, s, first, "q")
		second := decide(t, s, claim("replay", 1, 2)).Hold
		asks(t, s, second, "q")
		asks(t, s, first, "q")
		r, err := s.Last(t.Context(), key.Public("ask", "q"))
		require.NoError(t, err)
		require.Equal(t, "q?", string(r.Data))
		require.Equal(t, 1, r.Meta.Epoch)
	})
}

func TestToolThatAsksSomethingElseThanBeforeFailsClearly(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j := newJournal(s)
		first := owner(t, s, "keyed")
		asks(t, s, first, "q")
		other := idempotency.Question{ID: "q", Digest: "other", Event: []byte("other?")}
		_, err := j.Ask(t.Context(), first, other)
		requireCode(t, events.CodeToolError, err)
		require.ErrorContains(t, err, `question "q" was asked before with other content`)
		second := decide(t, s, claim("keyed", 1, 2)).Hold
		_, err = j.Ask(t.Context(), second, other)
		requireCode(t, events.CodeToolError, err)
		asks(t, s, second, "q2")
		_, err = j.Ask(t.Context(), first, idempotency.Question{ID: "q2", Digest: "other"})
		require.ErrorIs(t, err, idempotency.ErrLost, "an owner of before does not end the turn")
	})
}

func TestFirstWordOnAQuestionStands(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.Equal(t, idempotency.Accepted, answered(t, s, says("a", "yes", 2, 1)).Verdict)
		for seq, want := range map[uint64]idempotency.Verdicted{
			2: {Verdict: idempotency.Accepted, By: idempotency.Answered},
			3: {Verdict: idempotency.Replayed, By: idempotency.Answered},
		} {
			v := answered(t, s, says("a", "yes", seq, 2))
			require.Equal(t, want.Verdict, v.Verdict)
			require.Equal(t, want.By, v.By)
			require.Equal(t, idempotency.Signalled, v.Action)
		}
		v := answered(t, s, says("a", "no", 4, 1))
		require.Equal(t, idempotency.TooLate, v.Verdict)
		require.Equal(t, idempotency.Answered, v.By)
		require.Equal(t, idempotency.TooLate, answered(t, s, expires("a", 5)).Verdict)
		reply, err := newJournal(s).Look(t.Context(), h, "a")
		require.NoError(t, err)
		require.Equal(t, idempotency.Reply{Outcome: idempotency.Answered, Data: []byte("yes")}, reply)

		require.Equal(t, idempotency.Accepted, answered(t, s, expires("b", 6)).Verdict)
		v = answered(t, s, says("b", "yes", 7, 1))
		require.Equal(t, idempotency.TooLate, v.Verdict)
		require.Equal(t, idempotency.Expired, v.By)
		for id, outcome := range map[string]string{"a": "answered", "b": "expired"} {
			r, err := s.Last(t.Context(), key.Public("ack", id))
			require.NoError(t, err)
			require.Equal(t, outcome, string(r.Data))
		}
	})
}

func TestNothingIsStoredOfAnAnswerThatHasNoQuestionOrDoesNotFit(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j := newJournal(s)
		require.Equal(t, idempotency.Early, answered(t, s, says("q", "yes", 2, 1)).Verdict, "no turn")
		h := owner(t, s, "replay")
		require.Equal(t, idempotency.Early, answered(t, s, says("q", "yes", 2, 1)).Verdict, "no question")
		asks(t, s, h, "q")
		wrong := says("q", "no", 3, 1)
		errWrong := errors.New("wrong")
		wrong.Check = func(ask idempotency.Record) error {
			require.Equal(t, "q?", string(ask.Data))
			return errWrong
		}
		v := answered(t, s, wrong)
		require.Equal(t, idempotency.Invalid, v.Verdict)
		require.Equal(t, errWrong, v.Reason)
		require.Equal(t, idempotency.Done, v.Action)
		unchecked := says("q", "no", 3, 1)
		unchecked.Check = nil
		_, err := j.Answer(t.Context(), unchecked)
		require.ErrorContains(t, err, "set Answer.Check")
		_, err = j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		require.Equal(t, idempotency.Closed, answered(t, s, says("q", "yes", 4, 1)).Verdict)
		_, err = s.Last(t.Context(), key.Private("answer", "q"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		_, err = s.Last(t.Context(), key.Public("ack", "q"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	})
}

func TestAnswerWakesAnOwnerInMemoryAndResumesAParkedTurn(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.Equal(t, idempotency.Signalled, answered(t, s, says("a", "yes", 2, 1)).Action)
		require.False(t, parks(t, s, &h, "a", "b"), "somebody was here")
		takes(t, s, h, "a")

		require.True(t, parks(t, s, &h, "b"))
		require.Equal(t, 2, h.Epoch, "it went on as the next epoch, to be able to park again")
		require.True(t, load(t, s).Parked())
		require.Equal(t, `"state"`, string(load(t, s).State()))
		require.Equal(t, idempotency.Duplicate, decide(t, s, claim("replay", 9, 1)).Action)
		require.Equal(t, idempotency.Done, decide(t, s, claim("replay", 1, 2)).Action, "its message, whose acknowledgement was lost")

		v := answered(t, s, says("b", "no", 3, 1))
		require.Equal(t, idempotency.Run, v.Action)
		require.Equal(t, 3, v.Hold.Epoch)
		require.Equal(t, "replay", v.Hold.Effect)
		require.Equal(t, "f1", v.Hold.Fingerprint)
		require.Greater(t, v.Hold.Token, h.Token)
		require.Equal(t, lease(3, 1), load(t, s).Lease)
		takes(t, s, v.Hold, "a", "b")
		asks(t, s, v.Hold, "c")
		require.True(t, parks(t, s, &v.Hold, "c"))
		require.Equal(t, idempotency.Done, answered(t, s, says("a", "yes", 4, 1)).Action, "repeated: nobody is woken for it")
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

// An answer that was stored before an epoch began has woken the epoch before, and nobody else.
func TestOwnerLooksAgainBeforeItParksAsTheNextEpoch(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		answered(t, s, says("a", "yes", 2, 1))
		takes(t, s, h, "a")
		watched := &spy{s, map[string]func(){key.Private("takeover", "2"): func() {
			require.Equal(t, idempotency.Signalled, answered(t, s, says("b", "yes", 3, 1)).Action)
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
		_, err := j.Park(t.Context(), &first, []string{"q"}, nil)
		require.ErrorIs(t, err, idempotency.ErrLost, "sealed")
		require.Equal(t, idempotency.Signalled, answered(t, s, says("q", "yes", 2, 1)).Action)
		takes(t, s, second, "q")
		require.ErrorIs(t, j.Take(t.Context(), first, "q"), idempotency.ErrLost)
		_, err = j.Finish(t.Context(), second, nil)
		require.NoError(t, err)
		_, err = j.Look(t.Context(), first, "q")
		require.ErrorIs(t, err, idempotency.ErrLost, "the turn has ended")
	})
}

// A woken owner whose turn was taken over meanwhile must not go on as the next epoch.
func TestWokenRunDoesNotContinueAnEpochThatIsSomebodyElses(t *testing.T) {
	t.Parallel()
	s := idempotency.NewMemory()
	first := owner(t, s, "replay")
	asks(t, s, first, "a", "b")
	answered(t, s, says("a", "yes", 2, 1))
	require.Equal(t, 2, decide(t, s, claim("replay", 1, 2)).Hold.Epoch)
	_, err := newJournal(s).Park(t.Context(), &first, []string{"b"}, nil)
	require.ErrorIs(t, err, idempotency.ErrLost)
}

// TestReplayToolIsEnteredAgainOnlyBeforeAnOpenQuestion is what a redelivery decides after its
// worker died behind the given acts: a = a is asked, A = a is answered, + = and the tool has the
// answer, p = the turn is parked, and the next answer resumes it.
func TestReplayToolIsEnteredAgainOnlyBeforeAnOpenQuestion(t *testing.T) {
	t.Parallel()
	for acts, want := range map[string]idempotency.Action{
		"": idempotency.Conclude, "a": idempotency.Run, "aA": idempotency.Run, "aA+": idempotency.Conclude,
		"aA+b": idempotency.Run, "aA+bB": idempotency.Run, "aA+bB+": idempotency.Conclude, "aA+bB+c": idempotency.Run,
		"ab": idempotency.Run, "abA": idempotency.Run, "abA+": idempotency.Conclude, "abB+": idempotency.Conclude,
		"abA+B": idempotency.Conclude, "abA+B+": idempotency.Conclude, "abA+c": idempotency.Run,
		"abA+pB": idempotency.Run, "abB+pA": idempotency.Run, "abA+pB+": idempotency.Conclude,
		"abpA": idempotency.Run, "abpA+": idempotency.Conclude, "abpA+pB": idempotency.Run, "abpA+pB+": idempotency.Conclude,
		"aA+bpB": idempotency.Run, "aA+bpB+": idempotency.Conclude,
	} {
		s := idempotency.NewMemory()
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
				a := says(last, "yes", uint64(10+i), 1)
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
		if want == idempotency.Conclude {
			require.Equal(t, events.CodeInterrupted, d.Code, acts)
		}
	}
}

// A lost owner may take an answer after the decision to run again was made.
func TestAnswerIsHandedToASecondRunByEffect(t *testing.T) {
	t.Parallel()
	for effect, handed := range map[string]bool{"replay": false, "keyed": true, "idempotent": true, "none": true} {
		s := idempotency.NewMemory()
		first := owner(t, s, effect)
		asks(t, s, first, "a")
		second := decide(t, s, claim(effect, 1, 2)).Hold
		answered(t, s, says("a", "yes", 2, 1))
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
		answered(t, s, says("b", "yes", 3, 1))
		takes(t, s, first, "b")
		requireCode(t, events.CodeInterrupted, newJournal(s).Take(t.Context(), second, "a"))
	}
}

func TestAnswerThatResumedATurnIsItsLease(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.True(t, parks(t, s, &h, "a", "b"))
		require.Equal(t, 2, answered(t, s, says("a", "yes", 2, 1)).Hold.Epoch)
		require.Equal(t, idempotency.Leave, answered(t, s, says("a", "yes", 2, 1)).Action, "the same delivery")
		d := answered(t, s, says("a", "yes", 2, 2))
		require.Equal(t, idempotency.Run, d.Action, "its worker died")
		require.Equal(t, idempotency.Accepted, d.Verdict)
		require.Equal(t, 3, d.Hold.Epoch)
		require.Equal(t, idempotency.Leave, answered(t, s, says("a", "yes", 2, 1)).Action, "a delivery that came late")
		takes(t, s, d.Hold, "a")
		require.True(t, parks(t, s, &d.Hold, "b"))
		require.Equal(t, idempotency.Done, answered(t, s, says("a", "yes", 2, 3)).Action, "it parked again, and its acknowledgement was lost")
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
				v, err := newJournal(s).Answer(t.Context(), says(id, "yes", uint64(2+i), 1))
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

// Found by simulation: an owner that had lost the turn took an answer that the turn, parked by
// its new owner, was waiting for.
func TestAnswerResumesAParkedTurnThoughALostOwnerHasTakenIt(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		first := owner(t, s, "idempotent")
		second := decide(t, s, claim("idempotent", 1, 2)).Hold
		asks(t, s, second, "a")
		require.True(t, parks(t, s, &second, "a"))
		lost := &spy{s, map[string]func(){key.Public("ack", "a"): func() { takes(t, s, first, "a") }}}
		v, err := newJournal(lost).Answer(t.Context(), says("a", "yes", 2, 1))
		require.NoError(t, err)
		require.Equal(t, idempotency.Run, v.Action)
		takes(t, s, v.Hold, "a")
	})
}

func TestStateOfAParkedTurnIsJSON(t *testing.T) {
	t.Parallel()
	s := idempotency.NewMemory()
	h := owner(t, s, "keyed")
	asks(t, s, h, "a")
	_, err := newJournal(s).Park(t.Context(), &h, []string{"a"}, []byte("{"))
	require.ErrorContains(t, err, "no JSON")
	require.Nil(t, load(t, s).State())
}

func TestCancelClosesAllQuestionsAndHandsNothingOver(t *testing.T) {
	t.Parallel()
	cancel := claim("", 5, 1)
	cancel.Fingerprint, cancel.Verdict, cancel.Signal, cancel.Ack = "", string(events.CodeCancelled), true, says("", "", 0, 0).Ack
	for _, parked := range []bool{true, false} {
		stores(t, func(t *testing.T, s idempotency.Store) {
			t.Helper()
			h := owner(t, s, "replay")
			asks(t, s, h, "a", "b", "c")
			answered(t, s, says("c", "yes", 2, 1))
			takes(t, s, h, "c")
			want := idempotency.Signalled
			if parked {
				require.True(t, parks(t, s, &h, "a", "b"))
				want = idempotency.Conclude
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
				v := answered(t, s, says(id, "yes", 6, 1))
				require.Equal(t, idempotency.TooLate, v.Verdict)
				require.Equal(t, idempotency.Cancelled, v.By)
			}
			j := newJournal(s)
			_, err := j.Look(t.Context(), h, "a")
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
	s := idempotency.NewMemory()
	h := owner(t, s, "keyed")
	asks(t, s, h, "a")
	cancel := claim("", 5, 1)
	cancel.Verdict, cancel.Signal, cancel.Fingerprint = string(events.CodeCancelled), true, ""
	require.NoError(t, newJournal(s).Cancel(t.Context(), cancel, nil))
	require.Equal(t, idempotency.Signalled, decide(t, s, cancel).Action)
	_, err := newJournal(s).Park(t.Context(), &h, []string{"a"}, nil)
	requireCode(t, events.CodeCancelled, err)
}

func TestWhatCannotBeWokenIsNotParked(t *testing.T) {
	t.Parallel()
	s := idempotency.NewMemory()
	h := owner(t, s, "unsafe")
	asks(t, s, h, "a")
	_, err := newJournal(s).Park(t.Context(), &h, []string{"a"}, nil)
	require.ErrorContains(t, err, "let it wait in memory")
	require.Equal(t, idempotency.Signalled, answered(t, s, says("a", "yes", 2, 1)).Action)
	require.Equal(t, events.CodeInterrupted, decide(t, s, claim("unsafe", 1, 2)).Code)
	s = idempotency.NewMemory()
	h = owner(t, s, "keyed")
	_, err = newJournal(s).Park(t.Context(), &h, nil, nil)
	require.ErrorContains(t, err, "no question is open")
}

func TestSweepTakesAParkedTurnWhoseAnswerLostItsMessageAndNoOther(t *testing.T) {
	t.Parallel()
	s := idempotency.NewMemory()
	h := owner(t, s, "replay")
	asks(t, s, h, "a")
	require.True(t, parks(t, s, &h, "a"))
	require.Equal(t, idempotency.Done, resumed(t, s, resume(7, 1)).Action)
	_, err := s.Create(t.Context(), idempotency.Record{
		Key: key.Private("answer", "a"), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Verdict: "answered"},
	})
	require.NoError(t, err)
	require.False(t, load(t, s).Parked())
	d := resumed(t, s, resume(8, 1))
	require.Equal(t, idempotency.Run, d.Action)
	takes(t, s, d.Hold, "a")
	require.Equal(t, idempotency.Signalled, answered(t, s, says("a", "", 9, 1)).Action, "it comes after all")
}

func TestResumesAreNotCountedAsTakeovers(t *testing.T) {
	t.Parallel()
	s := idempotency.NewMemory()
	h := owner(t, s, "replay")
	for i := range 2 * idempotency.DefaultMaxTakeovers {
		id := "q" + strconv.Itoa(i)
		asks(t, s, h, id)
		require.True(t, parks(t, s, &h, id))
		v := answered(t, s, says(id, "yes", uint64(10+i), 1))
		require.Equal(t, idempotency.Run, v.Action)
		h = v.Hold
		takes(t, s, h, id)
	}
	asks(t, s, h, "last")
	again := says("q19", "yes", 29, 2)
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
		s := idempotency.NewMemory()
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
			_, err = j.Park(t.Context(), &h, []string{"q"}, nil)
			require.ErrorIs(t, err, idempotency.ErrLost)
		}
		require.Equal(t, events.CodeStateCorrupt, decide(t, s, claim("replay", 1, 2)).Code, kind)
	}
}

// TestTalkEndsWellWhicheverWriteHasNoAnswer lets each write of a turn with two questions, one
// answered in memory and one while it was parked, have an unknown outcome once.
func TestTalkEndsWellWhicheverWriteHasNoAnswer(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		for nth := range 13 {
			synctest.Test(t, func(t *testing.T) {
				s := &unlucky{Memory: idempotency.NewMemory(), nth: nth, stored: stored}
				h := owner(t, s, "replay")
				asks(t, s, h, "a", "b")
				require.Equal(t, idempotency.Signalled, answered(t, s, says("a", "yes", 2, 1)).Action)
				takes(t, s, h, "a")
				require.True(t, parks(t, s, &h, "b"))
				v := answered(t, s, says("b", "yes", 3, 1))
				require.Equal(t, idempotency.Accepted, v.Verdict)
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
	*idempotency.Memory

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

// TestAnswerFinishesWhatItsFirstDeliveryDidNot kills the worker of an answer at each of its
// writes; the message comes back.
func TestAnswerFinishesWhatItsFirstDeliveryDidNot(t *testing.T) {
	t.Parallel()
	for writes := range 4 {
		s := idempotency.NewMemory()
		h := owner(t, s, "replay")
		asks(t, s, h, "a")
		require.True(t, parks(t, s, &h, "a"))
		ctx, kill := context.WithCancel(t.Context())
		dying := &dying{Memory: s, left: writes, kill: kill}
		_, err := newJournal(dying).Answer(ctx, says("a", "yes", 2, 1))
		require.Error(t, err)
		v := answered(t, s, says("a", "yes", 2, 2))
		require.Equal(t, idempotency.Accepted, v.Verdict, "after %d writes", writes)
		require.Equal(t, idempotency.Run, v.Action)
		_, err = s.Last(t.Context(), key.Public("ack", "a"))
		require.NoError(t, err)
	}
}

// dying is the store of a worker that is killed after some writes.
type dying struct {
	*idempotency.Memory

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
