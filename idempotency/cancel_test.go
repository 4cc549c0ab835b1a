package idempotency_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

func cancelBy(seq uint64) idempotency.Claim {
	c := claim("", seq, 1)
	c.Fingerprint, c.RejectCode, c.Signal = "", string(events.CodeCancelled), true
	c.Ack = func(idempotency.Record) ([]byte, error) { return []byte(`{}`), nil }
	return c
}

// F21: see docs/faults.md. A turn ends with a question open, and the cancel that closes the question is
// stored after the response.
func TestCancelThatCameAfterTheEndCancelsNoLaterTurnOfItsKey(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(claim, response uint64) uint64{
		"claim expired":              func(claim, _ uint64) uint64 { return claim },
		"claim and response expired": func(_, response uint64) uint64 { return response },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lives(t, func(t *testing.T, s idempotency.Store, expire func(uint64)) {
				t.Helper()
				j := newJournal(s)
				h := owner(t, s, "replay")
				asks(t, s, h, "a")
				stored, err := j.Finish(t.Context(), h, []byte(`{}`))
				require.NoError(t, err)
				require.True(t, stored)
				response, err := s.Last(t.Context(), key.Public("tool_response"))
				require.NoError(t, err)
				require.NoError(t, j.Cancel(t.Context(), cancelBy(5), []byte(`"former"`)))
				require.Equal(t, h.Claim, load(t, s).Cancel.Meta.Claim)
				require.Equal(t, idempotency.Done, decide(t, s, cancelBy(5)).Action)
				expire(last(h.Claim, response.Seq))

				h = second(t, s, "replay")
				cancelled, err := j.Cancelled(t.Context(), h)
				require.NoError(t, err)
				require.False(t, cancelled, "no cancel names this turn")
				require.Nil(t, load(t, s).Cancel)
				asks(t, s, h, "a")

				require.NoError(t, j.Cancel(t.Context(), cancelBy(11), []byte(`"second"`)))
				require.Equal(t, `"second"`, string(load(t, s).Cancel.Data))
				cancelled, err = j.Cancelled(t.Context(), h)
				require.NoError(t, err)
				require.True(t, cancelled)
			})
		})
	}
}

// late is a store whose read of a turn is over before the turn is claimed again.
type late struct {
	*storetest.Memory

	then func()
}

func (s *late) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return s.Memory.Create(ctx, r)
}

// F21: see docs/faults.md.
func TestCancelOfAnEarlierGenerationThatIsStoredLateIsReplacedByOneOfThisGeneration(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	h := owner(t, s, "replay")
	asks(t, s, h, "a")
	var next idempotency.Hold
	slow := newJournal(&late{Memory: s, then: func() {
		s.Expire(1_000)
		next = second(t, s, "replay")
	}})
	require.NoError(t, slow.Cancel(t.Context(), cancelBy(5), []byte(`"former"`)))
	cancelled, err := newJournal(s).Cancelled(t.Context(), next)
	require.NoError(t, err)
	require.False(t, cancelled)
	require.NoError(t, newJournal(s).Cancel(t.Context(), cancelBy(11), []byte(`"second"`)))
	cancelled, err = newJournal(s).Cancelled(t.Context(), next)
	require.NoError(t, err)
	require.True(t, cancelled)
}

// F21: see docs/faults.md. Its canceller has seen no claim.
func TestCancelThatNamesNoClaimIsOfTheTurnThatIsClaimedWithinADay(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]bool{time.Minute: true, 23 * time.Hour: true, 25 * time.Hour: false} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewMemory()
				require.NoError(t, newJournal(s).Cancel(t.Context(), cancelBy(5), []byte(`{}`)))
				<-time.After(ahead)
				h := owner(t, s, "replay")
				cancelled, err := newJournal(s).Cancelled(t.Context(), h)
				require.NoError(t, err)
				require.Equal(t, want, cancelled)
				require.Equal(t, want, load(t, s).Cancel != nil)
				_, err = newJournal(s).ReadReply(t.Context(), h, "a")
				require.Equal(t, want, err != nil)
			})
		})
	}
}
