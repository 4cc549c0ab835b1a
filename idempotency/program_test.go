package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

func stepKey(id string) subjects.Key { return key.WithCall(subjects.StepCall(id)) }

// calls enters the tool of a step. Known is the turn as the run has read it, nil for the first run.
func calls(t *testing.T, s idempotency.Store, h idempotency.Hold, id, effect string, known *idempotency.Turn) (idempotency.StepEntry, error) {
	t.Helper()
	return newJournal(s).Enter(t.Context(), h.ForStep(stepKey(id).Call, effect), idempotency.StepCall{
		Event: []byte("called by " + h.Nonce), Digest: "digest", Known: known,
		Interrupted: func(*idempotency.Record) ([]byte, error) { return []byte("interrupted"), nil },
	})
}

// enters requires that the tool of a step is entered.
func enters(t *testing.T, s idempotency.Store, h idempotency.Hold, id, effect string) idempotency.Hold {
	t.Helper()
	entry, err := calls(t, s, h, id, effect, nil)
	require.NoError(t, err)
	require.NotZero(t, entry.Seq)
	require.Equal(t, idempotency.StepEntry{Effect: effect, Seq: entry.Seq}, entry)
	return h.ForStep(stepKey(id).Call, effect)
}

// endsStep requires that a response is the one of a step.
func endsStep(t *testing.T, s idempotency.Store, h idempotency.Hold, response string) {
	t.Helper()
	r, err := newJournal(s).EndStep(t.Context(), h, []byte(response))
	require.NoError(t, err)
	require.Equal(t, response, string(r.Data))
	require.Equal(t, response, responseOf(t, s, h.Key))
}

// responseOf returns the stored response of a call, "" if it has none.
func responseOf(t *testing.T, s idempotency.Store, call subjects.Key) string {
	t.Helper()
	r, err := s.Last(t.Context(), call.Public("tool_response"))
	if errors.Is(err, idempotency.ErrNotFound) {
		return ""
	}
	require.NoError(t, err)
	return string(r.Data)
}

// nextOwner takes the turn of a program over, by a delivery of its message.
func nextOwner(t *testing.T, s idempotency.Store, delivery uint64) idempotency.Decision {
	t.Helper()
	d := decide(t, s, claim("program", 1, delivery))
	require.Equal(t, idempotency.Run, d.Action, "a program may always be entered again")
	return d
}

func TestStepIsCalledBeforeItsToolIsEnteredAndHasOneResponse(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		h := owner(t, s, "program")
		step := enters(t, s, h, "a", "unsafe")
		require.Equal(t, h.Token, step.Token, "a step is fenced by the token of its turn")
		called := load(t, s).CallOf(step.Key).Called
		require.Equal(t, "called by "+h.Nonce, string(called.Data))
		require.Equal(t, "unsafe", called.Meta.Effect)
		require.Equal(t, "digest", called.Meta.Digest)
		require.Equal(t, 1, called.Meta.Epoch)
		endsStep(t, s, step, "done")
		endsStep(t, s, step, "done")
		require.Len(t, load(t, s).Records, 3)
	})
}

// R3 of a step whose owner is gone: the effect under which it was called decides, or a stricter one of today.
func TestOpenStepOfAnEarlierOwnerIsDecidedByItsEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		called, today, effect string // effect: under which it is entered again, "" for never
	}{
		{"unsafe", "unsafe", ""},
		{"unsafe", "none", ""},
		{"idempotent", "unsafe", ""},
		{"no such effect", "none", ""},
		{"replay", "replay", ""},
		{"keyed", "replay", ""},
		{"keyed", "keyed", "keyed"},
		{"none", "keyed", "keyed"},
		{"keyed", "none", "keyed"},
		{"idempotent", "idempotent", "idempotent"},
		{"none", "none", "none"},
		{"program", "program", "program"},
	} {
		t.Run(c.called+" and "+c.today, func(t *testing.T) {
			t.Parallel()
			s := storetest.NewMemory()
			first := owner(t, s, "program")
			enters(t, s, first, "a", c.called)
			d := nextOwner(t, s, 2)
			entry, err := calls(t, s, d.Hold, "a", c.today, d.Turn)
			require.NoError(t, err)
			if c.effect == "" {
				require.Equal(t, "interrupted", string(entry.Response.Data))
				require.Equal(t, "interrupted", responseOf(t, s, stepKey("a")))
				return
			}
			require.Nil(t, entry.Response)
			require.Equal(t, c.effect, entry.Effect)
			require.Equal(t, "called by "+first.Nonce, string(entry.Called.Data), "with the stored arguments")
			step := d.Hold.ForStep(stepKey("a").Call, c.effect)
			require.Greater(t, step.Token, first.Token)
			endsStep(t, s, step, "done")
		})
	}
}

func TestReplayStepIsEnteredAgainByItsOwnQuestions(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	first := owner(t, s, "program")
	waits, passed, other := enters(t, s, first, "waits", "replay"), enters(t, s, first, "passed", "replay"), enters(t, s, first, "other", "replay")
	asks(t, s, waits, "q")
	asks(t, s, passed, "q")
	answer := answerTo("q", "yes", 2, 1)
	answer.Key = passed.Key
	require.Equal(t, idempotency.Signalled, answered(t, s, answer).Action)
	takes(t, s, passed, "q")
	d := nextOwner(t, s, 2)
	for id, again := range map[string]bool{"waits": true, "passed": false, "other": false} {
		entry, err := calls(t, s, d.Hold, id, "replay", d.Turn)
		require.NoError(t, err)
		require.Equal(t, again, entry.Response == nil, id)
	}
	require.Empty(t, responseOf(t, s, waits.Key))
	require.Equal(t, "interrupted", responseOf(t, s, other.Key))
}

func TestResponseOfAnEarlierOwnerIsUsedHoweverLateItIsStored(t *testing.T) {
	t.Parallel()
	for _, effect := range []string{"unsafe", "replay", "idempotent"} {
		stores(t, func(t *testing.T, s idempotency.Store) {
			t.Helper()
			first := owner(t, s, "program")
			before, during := enters(t, s, first, "before", effect), enters(t, s, first, "during", "unsafe")
			d := nextOwner(t, s, 2)
			endsStep(t, s, before, "of the first")
			entry, err := calls(t, s, d.Hold, "before", effect, d.Turn)
			require.NoError(t, err)
			require.Equal(t, "of the first", string(entry.Response.Data))

			late := &spy{s, map[string]func(){during.Key.Public("tool_response"): func() { endsStep(t, s, during, "late") }}}
			entry, err = calls(t, late, d.Hold, "during", "unsafe", d.Turn)
			require.NoError(t, err)
			require.Equal(t, "late", string(entry.Response.Data), "and not interrupted")
		})
	}
}

func TestRunThatIsNoLongerTheOwnerEntersAndEndsNoStep(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j, first := newJournal(s), owner(t, s, "program")
		one, two := enters(t, s, first, "one", "none"), enters(t, s, first, "two", "none")
		second := nextOwner(t, s, 2).Hold
		enters(t, s, second, "three", "none")
		_, err := calls(t, s, first, "three", "none", nil)
		require.ErrorIs(t, err, idempotency.ErrLost, "called by a newer owner")
		ends := second
		ends.Nonce = idempotency.NewNonce()
		_, err = calls(t, s, ends, "three", "none", nil)
		require.ErrorIs(t, err, idempotency.ErrLost, "called in the same epoch by another run")

		endsStep(t, s, one, "of the first")
		r, err := j.EndStep(t.Context(), second.ForStep(one.Key.Call, "none"), []byte("of the second"))
		require.NoError(t, err)
		require.Equal(t, "of the first", string(r.Data), "the first response counts, and the second owner continues with it")
		endsStep(t, s, second.ForStep(two.Key.Call, "none"), "of the second")
		_, err = j.EndStep(t.Context(), two, []byte("of the first"))
		require.ErrorIs(t, err, idempotency.ErrLost, "ended by a newer owner")
		_, err = j.EndStep(t.Context(), ends.ForStep(two.Key.Call, "none"), []byte("of the end"))
		require.ErrorIs(t, err, idempotency.ErrLost, "ended in the same epoch by another run")
	})
}

func TestFirstProgramThatIsStoredCountsForAllOwners(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j, first := newJournal(s), owner(t, s, "program")
		second := nextOwner(t, s, 2).Hold
		for kind, store := range map[string]func(context.Context, idempotency.Hold, []byte) (idempotency.Record, error){
			"program": j.StoreProgram, "result": j.StoreResult,
		} {
			mine, err := store(t.Context(), first, []byte("first"))
			require.NoError(t, err)
			for _, h := range []idempotency.Hold{first, second} {
				r, err := store(t.Context(), h, []byte("first"))
				require.NoError(t, err)
				require.Equal(t, mine.Seq, r.Seq, kind)
			}
			r, err := store(t.Context(), second, []byte("second"))
			require.NoError(t, err)
			require.Equal(t, "first", string(r.Data), kind)
		}
		turn := load(t, s)
		require.Equal(t, "first", string(turn.Program.Data))
		require.Equal(t, "first", string(turn.Result.Data))
		require.Empty(t, turn.Steps())
	})
}

func TestUnreadableRecordOfAProgramFailsClosed(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "program")
	enters(t, s, h, "ended", "none")
	for _, name := range []string{key.Public("program"), stepKey("called").Public("tool_call"), stepKey("ended").Public("tool_response")} {
		_, err := s.Create(t.Context(), idempotency.Record{Key: name, Err: errLost})
		require.NoError(t, err)
	}
	second := h
	second.Epoch, second.Nonce = 2, idempotency.NewNonce()
	_, err := newJournal(s).StoreProgram(t.Context(), h, nil)
	requireCode(t, events.CodeStateCorrupt, err)
	for _, id := range []string{"called", "ended"} {
		_, err = calls(t, s, second, id, "none", nil)
		requireCode(t, events.CodeStateCorrupt, err)
	}
	_, err = newJournal(s).EndStep(t.Context(), h.ForStep(stepKey("ended").Call, "none"), nil)
	requireCode(t, events.CodeStateCorrupt, err)
	require.Equal(t, events.CodeStateCorrupt, decide(t, s, claim("program", 1, 2)).Code)
}

func TestOpenStepsAreClosedBeforeTheTurnEndsAndNoneAfterIt(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		j, h := newJournal(s), owner(t, s, "program")
		endsStep(t, s, enters(t, s, h, "ended", "none"), "done")
		for _, id := range []string{"open", "broken", "asks"} {
			enters(t, s, h, id, "replay")
		}
		asks(t, s, h.ForStep(stepKey("asks").Call, "replay"), "q")
		var closed []string
		closeSteps := func() error {
			closed = nil
			_, err := j.CloseSteps(t.Context(), h, 0, func(step *idempotency.Call) ([]byte, error) {
				id, _ := subjects.StepOfCall(step.Key.Call)
				if closed = append(closed, id); id == "broken" {
					return nil, errLost
				}
				return []byte("closed"), nil
			})
			return err
		}
		require.ErrorIs(t, closeSteps(), errLost)
		require.Equal(t, []string{"open", "broken", "asks"}, closed, "in the order in which they were called")
		require.Equal(t, "done", responseOf(t, s, stepKey("ended")))
		require.Equal(t, "closed", responseOf(t, s, stepKey("open")))
		require.Equal(t, "closed", responseOf(t, s, stepKey("asks")))
		require.ErrorIs(t, closeSteps(), errLost)
		require.Equal(t, []string{"broken"}, closed)

		_, err := j.Finish(t.Context(), h, nil)
		require.NoError(t, err)
		require.NoError(t, closeSteps())
		require.Empty(t, closed, "the response of the turn is the last one")
		require.Empty(t, responseOf(t, s, stepKey("broken")))
	})
}

// R12: a long program may have many owners, one step may not.
func TestTakeoversAreCountedSinceTheNewestResponseOfAStep(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h, delivery := owner(t, s, "program"), uint64(1)
	for i := range 3 {
		for range idempotency.DefaultMaxTakeovers {
			delivery++
			h = nextOwner(t, s, delivery).Hold
		}
		if i < 2 {
			endsStep(t, s, enters(t, s, h, string(rune('a'+i)), "none"), "done")
		}
	}
	d := decide(t, s, claim("program", 1, delivery+1))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeInterrupted, d.Code)
}

func TestStepsOfAnEarlierGenerationAreNotThisTurns(t *testing.T) {
	t.Parallel()
	lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
		t.Helper()
		j, former := newJournal(s), owner(t, s, "program")
		_, err := j.StoreProgram(t.Context(), former, []byte("former"))
		require.NoError(t, err)
		endsStep(t, s, enters(t, s, former, "a", "unsafe"), "former")
		enters(t, s, former, "b", "unsafe")
		_, err = j.Finish(t.Context(), former, nil)
		require.NoError(t, err)
		expire(former.Claim)

		h := second(t, s, "program")
		require.Empty(t, load(t, s).Steps())
		steps, err := j.ReadSteps(t.Context(), h, h.Claim, nil, stepKey("a"), stepKey("b"))
		require.NoError(t, err)
		require.Equal(t, []*idempotency.Call{nil, nil}, steps)
		r, err := j.StoreProgram(t.Context(), h, []byte("second"))
		require.NoError(t, err)
		require.Equal(t, "second", string(r.Data))
		enters(t, s, h, "a", "unsafe")
		endsStep(t, s, enters(t, s, h, "b", "unsafe"), "second")
		turn, err := j.CloseSteps(t.Context(), h, 0, func(*idempotency.Call) ([]byte, error) { return []byte("closed"), nil })
		require.NoError(t, err)
		require.Equal(t, "closed", string(turn.CallOf(stepKey("a")).Response.Data))
		require.Equal(t, "closed", responseOf(t, s, stepKey("a")))
	})
}
