package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

// TestScheduleOfAMessageNamesItsInboundSubjectAndID: and nothing else is taken for one.
func TestScheduleOfAMessageNamesItsInboundSubjectAndID(t *testing.T) {
	t.Parallel()
	s, err := subjects.New("a.b")
	require.NoError(t, err)
	inbound := s.In("default", "cancel", "app", "W F", "chat")
	timer, _, ok := s.DeferralTimer(inbound, "id-7")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(timer, strings.TrimSuffix(s.DeferralTimers(), ">")))
	in, id, ok := s.ParseDeferralTimer(timer)
	require.True(t, ok)
	require.Equal(t, "id-7", id)
	want, _ := s.ParseIn(inbound)
	require.Equal(t, want, in)
	key := subjects.TurnKey("app", "chat", "", "turn")
	for _, other := range []string{
		"", ".", "a.b.timer", "a.b.timer.", "a.b.timer.in", inbound, timer + ".more", timer + ".", strings.TrimSuffix(timer, ".id-7"),
		s.AskTimer(key, "1"), s.SweepTimer(), strings.TrimPrefix(timer, "a."),
	} {
		_, _, ok := s.ParseDeferralTimer(other)
		require.False(t, ok, other)
	}
}
