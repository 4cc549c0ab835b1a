package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
)

// stores runs a test on the store in memory and on a real server.

func stores(t *testing.T, test func(t *testing.T, s idempotency.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, storetest.NewMemory())
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		nc := oneturntest.NewServer(t).Connect()
		test(t, storetest.Open(t, nc, storetest.Bucket(t, nc)))
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

// answerTo is an answer, in message seq.
func answerTo(id, value string, seq, delivery uint64) idempotency.Answer {
	return idempotency.Answer{
		Key: key, ID: id, Lease: lease(seq, delivery), Outcome: idempotency.Answered, Digest: value, Data: []byte(value),
		Check: func(idempotency.Record) error { return nil },
		Ack:   func(r idempotency.Record) ([]byte, error) { return []byte(r.Meta.Outcome), nil },
	}
}

func expires(id string, seq uint64) idempotency.Answer {
	a := answerTo(id, "", seq, 1)
	a.Outcome, a.Check = idempotency.Expired, nil
	return a
}

func answered(t *testing.T, s idempotency.Store, a idempotency.Answer) idempotency.AnswerDecision {
	t.Helper()
	v, err := newJournal(s).Answer(t.Context(), a)
	require.NoError(t, err)
	return v
}

func parks(t *testing.T, s idempotency.Store, h *idempotency.Hold, open ...string) bool {
	t.Helper()
	parked, err := newJournal(s).Park(t.Context(), h, idempotency.AskedBy(key, open...), []byte(`"state"`))
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
			require.Equal(t, idempotency.Accepted, answered(t, s, answerTo(name, "yes", uint64(2+i), 1)).Status)
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

// A tool asks a person, and the answer arrives when its worker has parked the turn. Any worker continues it.
func Example() {
	ctx := context.Background()
	store := storetest.NewMemory()

	// The owner claims the turn, enters the tool, and the tool asks.
	first := idempotency.New(store, "worker-1", idempotency.Options{})
	claimed, _ := first.Claim(ctx, idempotency.Claim{Key: key, Lease: lease(1, 1), Effect: "replay"})
	hold := claimed.Hold
	approve := idempotency.Question{ID: "approve", Digest: "d1", Event: []byte(`{"type":"chat.tool_call"}`)}
	reply, _ := first.Ask(ctx, hold, approve)
	fmt.Println("open:", reply.Outcome == idempotency.Open)
	parked, _ := first.Park(ctx, &hold, idempotency.AskedBy(key, "approve"), []byte(`"the arguments"`))
	fmt.Println("parked, message acknowledged:", parked)

	// The answer comes to another worker.
	second := idempotency.New(store, "worker-2", idempotency.Options{})
	decided, _ := second.Answer(ctx, idempotency.Answer{
		Key: key, ID: "approve", Lease: lease(2, 1), Outcome: idempotency.Answered, Digest: "yes", Data: []byte(`"yes"`),
		Check: func(idempotency.Record) error { return nil },
		Ack:   func(idempotency.Record) ([]byte, error) { return []byte(`{"type":"chat.tool_call_ack"}`), nil },
	})
	fmt.Println(decided.Status, "and", decided.Action, "as epoch", decided.Hold.Epoch, "with", string(decided.Turn.State()))

	// Its run enters the tool again, which comes to the same question and finds it answered.
	reply, _ = second.Ask(ctx, decided.Hold, approve)
	err := second.Take(ctx, decided.Hold, "approve")
	fmt.Println(reply.Outcome, string(reply.Data), err)
	stored, _ := second.Finish(ctx, decided.Hold, []byte(`{"type":"chat.tool_response"}`))
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

func TestFirstAnswerToAQuestionStands(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.Equal(t, idempotency.Accepted, answered(t, s, answerTo("a", "yes", 2, 1)).Status)
		for seq, want := range map[uint64]idempotency.AnswerDecision{
			2: {Status: idempotency.Accepted, By: idempotency.Answered},
			3: {Status: idempotency.Replayed, By: idempotency.Answered},
		} {
			v := answered(t, s, answerTo("a", "yes", seq, 2))
			require.Equal(t, want.Status, v.Status)
			require.Equal(t, want.By, v.By)
			require.Equal(t, idempotency.Signalled, v.Action)
		}
		v := answered(t, s, answerTo("a", "no", 4, 1))
		require.Equal(t, idempotency.TooLate, v.Status)
		require.Equal(t, idempotency.Answered, v.By)
		require.Equal(t, idempotency.TooLate, answered(t, s, expires("a", 5)).Status)
		reply, err := newJournal(s).ReadReply(t.Context(), h, "a")
		require.NoError(t, err)
		require.Equal(t, idempotency.Reply{Outcome: idempotency.Answered, Data: []byte("yes")}, reply)

		require.Equal(t, idempotency.Accepted, answered(t, s, expires("b", 6)).Status)
		v = answered(t, s, answerTo("b", "yes", 7, 1))
		require.Equal(t, idempotency.TooLate, v.Status)
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
		require.Equal(t, idempotency.Early, answered(t, s, answerTo("q", "yes", 2, 1)).Status, "no turn")
		h := owner(t, s, "replay")
		require.Equal(t, idempotency.Early, answered(t, s, answerTo("q", "yes", 2, 1)).Status, "no question")
		asks(t, s, h, "q")
		wrong := answerTo("q", "no", 3, 1)
		errWrong := errors.New("wrong")
		wrong.Check = func(ask idempotency.Record) error {
			require.Equal(t, "q?", string(ask.Data))
			return errWrong
		}
		v := answered(t, s, wrong)
		require.Equal(t, idempotency.Invalid, v.Status)
		require.Equal(t, errWrong, v.Reason)
		require.Equal(t, idempotency.Done, v.Action)
		unchecked := answerTo("q", "no", 3, 1)
		unchecked.Check = nil
		_, err := j.Answer(t.Context(), unchecked)
		require.ErrorContains(t, err, "set Answer.Check")
		unchecked.Outcome = idempotency.Cancelled
		_, err = j.Answer(t.Context(), unchecked)
		require.ErrorContains(t, err, "set Answer.Outcome")
		_, err = j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		require.Equal(t, idempotency.Closed, answered(t, s, answerTo("q", "yes", 4, 1)).Status)
		_, err = s.Last(t.Context(), key.Private("answer", "q"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		_, err = s.Last(t.Context(), key.Public("ack", "q"))
		require.ErrorIs(t, err, idempotency.ErrNotFound)
	})
}
