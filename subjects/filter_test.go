package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

func TestNameOfARecordIsItsKey(t *testing.T) {
	t.Parallel()
	k := subjects.TurnKey("app", "chat 1", "r", "t.1")
	for _, name := range []string{k.Public("tool_call"), k.Public("ask", "1"), k.Private("park", "2"), k.Private("result")} {
		r, ok := subjects.ParseKey(name)
		require.True(t, ok, name)
		require.Equal(t, name, r.Name())
	}
}

func TestTimersOfQuestionsAreMatchedByTheirCalls(t *testing.T) {
	t.Parallel()
	s, err := subjects.New("a.b")
	require.NoError(t, err)
	calls := subjects.TurnKey("app", "chat 1", "", "t")
	require.Equal(t, s.AskTimer(calls, "why?"), s.AskTimers(calls, subjects.Token("why?")))
	calls.Chat = "*"
	require.Equal(t, "a.b.timer.ask.app.*.0-t.0.1", s.AskTimers(calls, "1"))
	require.Equal(t, "a.b.timer.ask.app.*.*.*.*", s.AskTimersOfTenant("app"))
}
