package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
)

// lives runs a test on both stores, with a retention that takes all records up to a sequence.
func lives(t *testing.T, test func(t *testing.T, s idempotency.Store, expire func(last uint64))) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := storetest.NewMemory()
		test(t, s, s.Expire)
	})
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		nc := oneturntest.NewServer(t).Connect()
		space := storetest.Bucket(t, nc)
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		stream, err := js.Stream(t.Context(), space.TurnsStream())
		require.NoError(t, err)
		test(t, storetest.Open(t, nc, space), func(last uint64) {
			require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSequence(last+1)))
		})
	})
}

// former leaves a turn that asked, parked, was taken over and ended, and whose claim has expired.
func former(t *testing.T, s idempotency.Store, expire func(uint64)) {
	t.Helper()
	j := newJournal(s)
	h := owner(t, s, "replay")
	claimed := h.Claim
	_, err := j.Step(t.Context(), h, "step", []byte(`"former"`))
	require.NoError(t, err)
	asks(t, s, h, "a", "b")
	require.NoError(t, j.Show(t.Context(), h, "table", []byte(`"former"`)))
	require.True(t, parks(t, s, &h, "a", "b"))
	h = answered(t, s, answerTo("a", "yes", 2, 1)).Hold
	takes(t, s, h, "a")
	require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("b", "yes", 3, 1)).Action)
	takes(t, s, h, "b")
	_, err = j.Delta(t.Context(), h, []byte(`{"of":"the former"}`))
	require.NoError(t, err)
	stored, err := j.Finish(t.Context(), h, []byte(`{"of":"the former"}`))
	require.NoError(t, err)
	require.True(t, stored)
	expire(claimed)
	require.Nil(t, load(t, s).Claim)
}

// second is a run of the turn that message 7 has claimed again.
func second(t *testing.T, s idempotency.Store, effect string) idempotency.Hold {
	t.Helper()
	d := decide(t, s, claim(effect, 7, 1))
	require.Equal(t, idempotency.Run, d.Action, "a duplicate after the retention is a new turn")
	return d.Hold
}

// F21: see docs/faults.md.
func TestTurnClaimedAfterTheRetentionGetsItsOwnResponse(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		former(t, s, expire)
		h := second(t, s, "unsafe")
		stored, err := newJournal(s).Finish(t.Context(), h, []byte(`{"of":"the second"}`))
		require.NoError(t, err)
		require.True(t, stored)
		end, err := s.Last(t.Context(), key.Public("tool_response"))
		require.NoError(t, err)
		require.JSONEq(t, `{"of":"the second"}`, string(end.Data))
		require.Len(t, load(t, s).Records, 2, "the records that remain of the earlier turn are not seen")
		require.Equal(t, end.Seq, decide(t, s, claim("unsafe", 8, 1)).End.Seq, "and the next one is a duplicate of the second")
	})
}

func TestNothingOfAnEarlierGenerationIsReadAsTheTurns(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		former(t, s, expire)
		require.Equal(t, idempotency.Early, answered(t, s, answerTo("a", "no", 6, 1)).Status, "it may be the answer to a question of the next turn")
		h := second(t, s, "replay")
		j := newJournal(s)
		require.Equal(t, idempotency.Duplicate, decide(t, s, claim("replay", 8, 1)).Action, "it has no response")
		require.False(t, load(t, s).Parked())
		_, err := j.QuestionRecord(t.Context(), key, "a")
		require.ErrorIs(t, err, idempotency.ErrNotFound)
		require.Equal(t, idempotency.Early, answered(t, s, answerTo("a", "no", 9, 1)).Status)

		_, done, err := j.StepResult(t.Context(), h, "step")
		require.NoError(t, err)
		require.False(t, done)
		result, err := j.Step(t.Context(), h, "step", []byte(`"second"`))
		require.NoError(t, err)
		require.Equal(t, `"second"`, string(result))
		require.NoError(t, j.Show(t.Context(), h, "table", []byte(`"second"`)))
		asks(t, s, h, "a", "b")
		require.True(t, parks(t, s, &h, "a", "b"))
		require.True(t, load(t, s).Parked())

		v := answered(t, s, answerTo("a", "no", 9, 1))
		require.Equal(t, idempotency.Accepted, v.Status)
		require.Equal(t, idempotency.Run, v.Action)
		h = v.Hold
		reply, err := j.ReadReply(t.Context(), h, "a")
		require.NoError(t, err)
		require.Equal(t, "no", string(reply.Data))
		takes(t, s, h, "a")
		_, err = j.Delta(t.Context(), h, []byte(`{"of":"the second"}`))
		require.NoError(t, err)
		stored, err := j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		require.True(t, stored)
		turn := load(t, s)
		require.Len(t, turn.Questions(), 2)
		q, _ := turn.Question("b")
		require.Equal(t, idempotency.Open, q.Outcome())
		shown, err := s.Last(t.Context(), key.Public("show", "table"))
		require.NoError(t, err)
		require.Equal(t, `"second"`, string(shown.Data))
	})
}

func TestTakeoversOfAnEarlierGenerationAreNotThisTurns(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		former(t, s, expire)
		second(t, s, "keyed")
		d := decide(t, s, claim("keyed", 7, 2))
		require.Equal(t, idempotency.Run, d.Action)
		require.Equal(t, 2, d.Hold.Epoch)
		d = resumed(t, s, resume(20, 1))
		require.Equal(t, idempotency.Run, d.Action)
		require.Equal(t, 3, d.Hold.Epoch)
		stored, err := newJournal(s).Finish(t.Context(), d.Hold, nil)
		require.NoError(t, err)
		require.True(t, stored)
	})
}

func TestRejectedTurnAfterTheRetentionGetsItsResponse(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	former(t, s, s.Expire)
	c := claim("", 7, 1)
	c.RejectCode = string(events.CodeTooOld)
	require.Equal(t, idempotency.EndTurn, decide(t, s, c).Action)
	c.Lease.Delivery = 2 // its worker died before it could end it
	d := decide(t, s, c)
	require.Equal(t, events.CodeTooOld, d.Code)
	stored, err := newJournal(s).Finish(t.Context(), d.Hold, nil)
	require.NoError(t, err)
	require.True(t, stored)
}

// F21: see docs/faults.md.
func TestCancelOfAnEarlierGenerationCancelsNothing(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j := newJournal(s)
		cancel := claim("", 5, 1)
		cancel.Fingerprint, cancel.RejectCode, cancel.Signal = "", string(events.CodeCancelled), true
		h := owner(t, s, "keyed")
		require.NoError(t, j.Cancel(t.Context(), cancel, []byte(`"former"`)))
		_, err := j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		expire(h.Claim)

		h = second(t, s, "keyed")
		cancelled, err := j.Cancelled(t.Context(), h)
		require.NoError(t, err)
		require.False(t, cancelled)
		asks(t, s, h, "a")
		require.Equal(t, idempotency.Run, decide(t, s, claim("keyed", 7, 2)).Action)

		cancel.Lease.Seq = 11
		require.Equal(t, idempotency.Leave, decide(t, s, cancel).Action, "no cancel of this turn is stored yet")
		require.NoError(t, j.Cancel(t.Context(), cancel, []byte(`"second"`)))
		require.Equal(t, idempotency.Signalled, decide(t, s, cancel).Action)
		cancelled, err = j.Cancelled(t.Context(), h)
		require.NoError(t, err)
		require.True(t, cancelled)
		require.Equal(t, events.CodeCancelled, decide(t, s, claim("keyed", 7, 3)).Code)
		require.Equal(t, `"second"`, string(load(t, s).Cancel.Data))
	})
}

func TestCancelOfATurnThatHasEndedLeavesNothingForItsNextGeneration(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "keyed")
	_, err := newJournal(s).Finish(t.Context(), h, nil)
	require.NoError(t, err)
	require.NoError(t, newJournal(s).Cancel(t.Context(), claim("", 5, 1), []byte(`{}`)))
	s.Expire(h.Claim)
	cancelled, err := newJournal(s).Cancelled(t.Context(), second(t, s, "keyed"))
	require.NoError(t, err)
	require.False(t, cancelled)
}

// expiring is a store in which a record expires while it is being replaced.
type expiring struct{ *storetest.Memory }

func (s expiring) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	s.Expire(r.Seq)
	return s.Memory.Create(ctx, r)
}

func TestRecordThatExpiresWhileItIsReplacedIsNotMissed(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	former(t, s, s.Expire)
	h := second(t, s, "unsafe")
	stored, err := newJournal(expiring{s}).Finish(t.Context(), h, []byte(`"second"`))
	require.NoError(t, err)
	require.True(t, stored)
}

// deaf is a store whose first answers to creates are lost.
type deaf struct {
	*storetest.Memory

	lost int
}

func (s *deaf) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	seq, err := s.Memory.Create(ctx, r)
	var exists *idempotency.ExistsError
	if s.lost--; s.lost >= 0 && !errors.As(err, &exists) {
		return 0, errLost
	}
	return seq, err
}

func TestResponseThatReplacedAnEarlierOneIsRecognisedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	former(t, s, s.Expire)
	h := second(t, s, "unsafe")
	stored, err := newJournal(&deaf{s, 3}).Finish(t.Context(), h, []byte(`"second"`))
	require.NoError(t, err)
	require.True(t, stored)
}

// A claim that was damaged after its turn had ended has a higher sequence than the response.
func TestDamagedClaimMakesNoEarlierGenerationOfAResponse(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "unsafe")
	_, err := newJournal(s).Finish(t.Context(), h, []byte(`{"of":"the turn"}`))
	require.NoError(t, err)
	_, err = s.Create(t.Context(), idempotency.Record{Key: key.Public("tool_call"), Seq: h.Claim, Err: errLost})
	require.NoError(t, err)
	d := decide(t, s, claim("unsafe", 1, 2))
	require.Equal(t, idempotency.Done, d.Action)
	require.JSONEq(t, `{"of":"the turn"}`, string(d.End.Data))
}
