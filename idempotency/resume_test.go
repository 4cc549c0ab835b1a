package idempotency_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

// resume is a resume message for the turn of these tests; none of the leases is held.
func resume(seq, delivery uint64) idempotency.Resume {
	return idempotency.Resume{
		Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: delivery},
		Held: func(context.Context, idempotency.Lease) (bool, error) { return false, nil },
	}
}

func resumed(t *testing.T, s idempotency.Store, r idempotency.Resume) idempotency.Decision {
	t.Helper()
	d, err := newJournal(s).Resume(t.Context(), r)
	require.NoError(t, err)
	return d
}

func ExampleJournal_Resume() {
	ctx := context.Background()
	journal := idempotency.New(storetest.NewMemory(), "worker-2", idempotency.Options{})
	lease := func(seq uint64) idempotency.Lease {
		return idempotency.Lease{Stream: "ONETURN_IN", Seq: seq, Delivery: 1}
	}
	_, _ = journal.Claim(ctx, idempotency.Claim{Key: key, Lease: lease(1), Effect: "idempotent"})
	ask := func(seq uint64, gone ...uint64) {
		d, err := journal.Resume(ctx, idempotency.Resume{Key: key, Lease: lease(seq), Held: func(_ context.Context, l idempotency.Lease) (bool, error) {
			return len(gone) == 0 || l.Seq != gone[0], nil
		}})
		fmt.Println(d.Action, "as epoch", d.Hold.Epoch, err)
	}
	ask(2)    // the message of the turn is there: nothing to repair
	ask(3, 1) // it is gone: this message is the lease now
	ask(4, 1) // and holds the turn
	// Output:
	// done as epoch 0 <nil>
	// run as epoch 2 <nil>
	// done as epoch 0 <nil>
}

func TestResumeOfAnOrphanFollowsTheEffect(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]idempotency.Action{
		"unsafe": idempotency.EndTurn, "replay": idempotency.EndTurn, "": idempotency.EndTurn, "no such effect": idempotency.EndTurn,
		"keyed": idempotency.Run, "idempotent": idempotency.Run, "none": idempotency.Run,
	} {
		s := storetest.NewMemory()
		first := decide(t, s, claim(effect, 1, 1))
		d := resumed(t, s, resume(7, 1))
		require.Equal(t, want, d.Action, effect)
		require.Equal(t, "f1", d.Hold.Fingerprint, effect)
		if want == idempotency.EndTurn {
			require.Equal(t, events.CodeInterrupted, d.Code, effect)
			continue
		}
		require.Equal(t, 2, d.Hold.Epoch)
		require.Greater(t, d.Hold.Token, first.Hold.Token)
		require.Equal(t, uint64(7), load(t, s).Lease.Seq, "the resume is the lease")
	}
}

func load(t *testing.T, s idempotency.Store) *idempotency.Turn {
	t.Helper()
	turn, err := idempotency.Load(t.Context(), s, key)
	require.NoError(t, err)
	return turn
}

func TestResumeTakesOverOnlyATurnWithoutAnOwner(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	require.Equal(t, idempotency.Done, resumed(t, s, resume(7, 1)).Action, "no claim")
	require.Equal(t, idempotency.Run, decide(t, s, claim("keyed", 1, 1)).Action)

	held := resume(7, 1)
	held.Held = func(_ context.Context, l idempotency.Lease) (bool, error) {
		require.Equal(t, idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}, l)
		return true, nil
	}
	require.Equal(t, idempotency.Done, resumed(t, s, held).Action, "its message is there")

	broken := resume(7, 1)
	broken.Held = func(context.Context, idempotency.Lease) (bool, error) { return false, errLost }
	_, err := newJournal(s).Resume(t.Context(), broken)
	require.ErrorIs(t, err, errLost)

	park(t, s, "parked")
	require.True(t, load(t, s).Parked())
	require.Equal(t, idempotency.Done, resumed(t, s, resume(7, 1)).Action, "parked")
	require.Len(t, load(t, s).Records, 2, "nothing was written")

	s = storetest.NewMemory()
	first := decide(t, s, claim("keyed", 1, 1))
	_, err = newJournal(s).Finish(t.Context(), first.Hold, nil)
	require.NoError(t, err)
	require.Equal(t, idempotency.Done, resumed(t, s, resume(7, 1)).Action, "ended")
}

func park(t *testing.T, s idempotency.Store, how string) {
	t.Helper()
	_, err := s.Create(t.Context(), idempotency.Record{
		Key: key.Private("park", "1"), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: how},
	})
	require.NoError(t, err)
}

func TestResumeTakesOverAnEpochThatWasWokenOrSealed(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"woken", "sealed"} {
		s := storetest.NewMemory()
		decide(t, s, claim("keyed", 1, 1))
		park(t, s, how)
		require.Equal(t, idempotency.Run, resumed(t, s, resume(7, 1)).Action, how)
	}
}

func TestRedeliveredResumeFollowsTheLeaseLikeEveryMessage(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	decide(t, s, claim("keyed", 1, 1))
	require.Equal(t, 2, resumed(t, s, resume(7, 1)).Hold.Epoch)
	require.Equal(t, idempotency.Leave, resumed(t, s, resume(7, 1)).Action, "the same delivery")
	require.Equal(t, 3, resumed(t, s, resume(7, 2)).Hold.Epoch)
	require.Equal(t, idempotency.Leave, resumed(t, s, resume(7, 1)).Action, "a delivery that came late")
	require.Equal(t, idempotency.Duplicate, decide(t, s, claim("keyed", 1, 9)).Action, "the turn's own message, late")
	held := resume(8, 1)
	held.Held = func(_ context.Context, l idempotency.Lease) (bool, error) { return l.Seq == 7, nil }
	require.Equal(t, idempotency.Done, resumed(t, s, held).Action, "a second resume while the first holds the turn")
	for delivery := uint64(3); delivery < 20; delivery++ {
		d := resumed(t, s, resume(7, delivery))
		if d.Action == idempotency.EndTurn {
			require.Equal(t, events.CodeInterrupted, d.Code)
			require.Equal(t, idempotency.DefaultMaxTakeovers+1, d.Hold.Epoch)
			return
		}
	}
	require.Fail(t, "a turn changes hands for ever")
}

func TestResumeEndsATurnPastItsLifeWhetherOrNotItIsHeld(t *testing.T) {
	t.Parallel()
	past := func(seq uint64) idempotency.Resume {
		r := resume(seq, 1)
		r.Held = func(context.Context, idempotency.Lease) (bool, error) { return true, nil }
		r.Expired = func(claimed time.Time) bool { return !claimed.IsZero() }
		return r
	}
	for _, how := range []string{"", "parked"} {
		s := storetest.NewMemory()
		decide(t, s, claim("idempotent", 1, 1))
		if how != "" {
			park(t, s, how)
		}
		d := resumed(t, s, past(7))
		require.Equal(t, idempotency.EndTurn, d.Action)
		require.Equal(t, events.CodeExpired, d.Code)
	}
	s := storetest.NewMemory()
	c := claim("", 1, 1)
	c.RejectCode = string(events.CodeValidationFailed)
	decide(t, s, c)
	require.Equal(t, idempotency.Done, resumed(t, s, past(7)).Action, "a rejected turn is its message's to end")
	d := resumed(t, s, resume(7, 1))
	require.Equal(t, events.CodeValidationFailed, d.Code, "or, without one, ends with the code of its claim")
}

func TestResumeEndsACancelledOrphanAsCancelled(t *testing.T) {
	t.Parallel()
	for _, effect := range []string{"unsafe", "keyed"} {
		s := storetest.NewMemory()
		decide(t, s, claim(effect, 1, 1))
		require.NoError(t, newJournal(s).Cancel(t.Context(), claim(effect, 3, 1), nil))
		require.Equal(t, events.CodeCancelled, resumed(t, s, resume(7, 1)).Code)
	}
}

func TestResumeOfATurnThatCannotBeReadFailsClosed(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	_, err := s.Create(t.Context(), idempotency.Record{Key: key.Public("tool_call"), Err: errLost})
	require.NoError(t, err)
	d := resumed(t, s, resume(7, 1))
	require.Equal(t, idempotency.EndTurn, d.Action)
	require.Equal(t, events.CodeStateCorrupt, d.Code)
}

// TestResumesAndALateDeliveryRunTheToolOnceAnEpoch races the turn's own late delivery with
// resumes: only the one that creates the takeover record runs.
func TestResumesAndALateDeliveryRunTheToolOnceAnEpoch(t *testing.T) {
	t.Parallel()
	for range 200 {
		s := storetest.NewMemory()
		decide(t, s, claim("idempotent", 1, 1))
		var (
			mu    sync.Mutex
			wg    sync.WaitGroup
			runs  = map[int]int{}
			ended int
		)
		note := func(d idempotency.Decision, err error) {
			stored := false
			if err == nil && d.Action == idempotency.Run {
				stored, err = newJournal(s).Finish(context.WithoutCancel(t.Context()), d.Hold, nil)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("decide: %v", err)
			}
			if d.Action == idempotency.Run {
				runs[d.Hold.Epoch]++
			}
			if stored {
				ended++
			}
		}
		wg.Go(func() { note(newJournal(s).Claim(t.Context(), claim("idempotent", 1, 2))) })
		for i := range uint64(3) {
			wg.Go(func() { note(newJournal(s).Resume(t.Context(), resume(10+i, 1))) })
		}
		wg.Wait()
		require.Equal(t, 1, ended)
		for epoch, n := range runs {
			require.Equal(t, 1, n, "epoch %d", epoch)
		}
	}
}
