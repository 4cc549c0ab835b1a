package idempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
)

// lateReply is a store that stores a record and loses the reply; meanwhile is what others do until the record is sent again.
type lateReply struct {
	*storetest.Memory

	key       string
	meanwhile func()
}

func (s *lateReply) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	seq, err := s.Memory.Create(ctx, r)
	if r.Key == s.key && s.meanwhile != nil {
		meanwhile := s.meanwhile
		s.meanwhile = nil
		meanwhile()
		return 0, errLost
	}
	return seq, err
}

// The turn of an owner whose lease has lapsed without its knowledge was ended while it waited for the reply to its claim.
func TestToolIsNotEnteredByAClaimWhoseTurnHasEndedBeforeItsReply(t *testing.T) {
	t.Parallel()
	s := &lateReply{Memory: storetest.NewMemory(), key: key.Public("tool_call")}
	s.meanwhile = func() {
		d := decide(t, s.Memory, claim("unsafe", 1, 2))
		require.Equal(t, idempotency.EndTurn, d.Action)
		stored, err := newJournal(s.Memory).Finish(t.Context(), d.Hold, []byte("interrupted"))
		require.NoError(t, err)
		require.True(t, stored)
	}
	d, err := hasty(s).Claim(t.Context(), claim("unsafe", 1, 1))
	require.NoError(t, err)
	require.Equal(t, idempotency.Done, d.Action)
	require.Equal(t, "interrupted", string(d.End.Data))
}

func TestToolOfAStepIsNotEnteredWhenTheStepHasEndedBeforeTheReplyToItsCall(t *testing.T) {
	t.Parallel()
	s := &lateReply{Memory: storetest.NewMemory(), key: stepKey("a").Public("tool_call")}
	first := owner(t, s, "program")
	s.meanwhile = func() {
		next := nextOwner(t, s.Memory, 2)
		entry, err := calls(t, s.Memory, next.Hold, "a", "unsafe", next.Turn)
		require.NoError(t, err)
		require.NotNil(t, entry.Response, "an unsafe step of an earlier owner is not entered again")
	}
	_, err := calls(t, s, first, "a", "unsafe", nil)
	require.ErrorIs(t, err, idempotency.ErrLost)
}
