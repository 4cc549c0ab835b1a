package idempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// replaced is a journal whose leader stands still when a takeover is about to be stored, and is
// replaced. Until it notices, scans are answered with what it had then.
type replaced struct {
	*storetest.Memory

	meanwhile func() // what the new leader stores before the takeover
	reads     int    // scans that the old leader still answers
	frozen    []idempotency.Record
}

func (s *replaced) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if k, _ := subjects.ParseKey(r.Key); k.Kind == "takeover" && s.meanwhile != nil {
		s.frozen, _ = s.Memory.Scan(ctx, k.Key, nil)
		meanwhile := s.meanwhile
		s.meanwhile = nil
		meanwhile()
	}
	return s.Memory.Create(ctx, r)
}

func (s *replaced) Scan(ctx context.Context, k subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	if s.frozen != nil && s.reads > 0 {
		s.reads--
		return s.frozen, nil
	}
	return s.Memory.Scan(ctx, k, known)
}

// hasty is a journal that repeats reads without a pause.
func hasty(s idempotency.Store) *idempotency.Journal {
	return idempotency.New(s, "w", idempotency.Options{Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
}

// F15: a takeover is decided by a read that has it, however many reads before it lag.
func TestTakeoverIsDecidedByAReadThatHasTheTakeover(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]func(j *idempotency.Journal) (idempotency.Decision, error){
		"redelivery": func(j *idempotency.Journal) (idempotency.Decision, error) {
			return j.Claim(t.Context(), claim("idempotent", 1, 2))
		},
		"resume": func(j *idempotency.Journal) (idempotency.Decision, error) {
			return j.Resume(t.Context(), resume(2, 1))
		},
	} {
		for reads, want := range map[int]idempotency.Action{0: idempotency.Done, 3: idempotency.Done, 1 << 20: idempotency.Leave} {
			s := &replaced{Memory: storetest.NewMemory(), reads: reads}
			first := decide(t, s, claim("idempotent", 1, 1))
			s.meanwhile = func() {
				stored, err := newJournal(s).Finish(t.Context(), first.Hold, []byte(`{}`))
				require.NoError(t, err)
				require.True(t, stored)
			}
			d, err := taken(hasty(s))
			require.NoError(t, err)
			require.Equal(t, want, d.Action, "%s, %d stale reads", name, reads)
		}
	}
}

func TestLeaseOfATakeoverThatNoReadShowedIsTakenOverByTheNextDelivery(t *testing.T) {
	t.Parallel()
	s := &replaced{Memory: storetest.NewMemory(), reads: 1 << 20, meanwhile: func() {}}
	decide(t, s, claim("idempotent", 1, 1))
	d, err := hasty(s).Claim(t.Context(), claim("idempotent", 1, 2))
	require.NoError(t, err)
	require.Equal(t, idempotency.Leave, d.Action)
	s.reads = 0
	d = decide(t, s, claim("idempotent", 1, 3))
	require.Equal(t, idempotency.Run, d.Action)
	require.Equal(t, 3, d.Hold.Epoch)
}

// F15: a read that is older than the epoch of the owner does not make it park.
func TestOwnerDoesNotParkByAReadFromBeforeItsEpoch(t *testing.T) {
	t.Parallel()
	for _, reads := range []int{0, 3} {
		s := &replaced{Memory: storetest.NewMemory(), reads: reads}
		h := owner(t, s, "replay")
		asks(t, s, h, "a", "b")
		require.Equal(t, idempotency.Signalled, answered(t, s, answerTo("a", "yes", 2, 1)).Action)
		takes(t, s, h, "a")
		s.meanwhile = func() {
			require.Equal(t, idempotency.Signalled, answered(t, s.Memory, answerTo("b", "yes", 3, 1)).Action)
		}
		parked, err := hasty(s).Park(t.Context(), &h, idempotency.AskedBy(key, "b"), nil)
		require.NoError(t, err)
		require.False(t, parked, "b was answered before the epoch began: nothing wakes it")
		takes(t, s, h, "b")
	}
}

func TestAnswerKnownFromTheTakeoverIsNotForgottenForAStalerRead(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	asks(t, s, h, "a")
	require.True(t, parks(t, s, &h, "a"))
	v := answered(t, s, answerTo("a", "yes", 2, 1))
	require.Equal(t, idempotency.Run, v.Action)
	q := question("a")
	q.Known, _ = v.Turn.Question("a")
	reply, err := newJournal(&forgetful{s, key.Private("answer", "a")}).Ask(t.Context(), v.Hold, q)
	require.NoError(t, err)
	require.Equal(t, idempotency.Answered, reply.Outcome)
}

// forgetful never finds one record.
type forgetful struct {
	*storetest.Memory

	hidden string
}

func (s *forgetful) Last(ctx context.Context, k string) (idempotency.Record, error) {
	if k == s.hidden {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return s.Memory.Last(ctx, k)
}

func (s *forgetful) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

func TestStepKnownFromTheTakeoverNeedsNoOtherRead(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "idempotent")
	_, err := newJournal(s).Step(t.Context(), h, "pay", []byte(`1`))
	require.NoError(t, err)
	d := decide(t, s, claim("idempotent", 1, 2))
	result, done := d.Turn.Step("pay")
	require.True(t, done)
	require.Equal(t, `1`, string(result))
	_, done = d.Turn.Step("other")
	require.False(t, done)
}

// F15: a read from before the claim that refused it shows the end of the turn before, under a key that is used again.
func TestDuplicateIsNotTakenForDoneByAReadFromBeforeTheClaim(t *testing.T) {
	t.Parallel()
	s := &replaced{Memory: storetest.NewMemory(), reads: 3}
	former := decide(t, s, claim("idempotent", 1, 1))
	stored, err := newJournal(s).Finish(t.Context(), former.Hold, []byte(`{}`))
	require.NoError(t, err)
	require.True(t, stored)
	s.Expire(former.Hold.Claim)
	s.frozen, err = s.Memory.Scan(t.Context(), key, nil)
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, decide(t, s, claim("idempotent", 2, 1)).Action)
	d, err := hasty(s).Claim(t.Context(), claim("idempotent", 2, 2))
	require.NoError(t, err)
	require.Equal(t, idempotency.Run, d.Action)
}
