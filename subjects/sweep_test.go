package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/subjects"
)

func space(t *testing.T) subjects.Space {
	t.Helper()
	s, err := subjects.New("a.b")
	require.NoError(t, err)
	return s
}

func TestSweepsAreScheduledAndDueUnderTheSubjectsOfTimers(t *testing.T) {
	t.Parallel()
	s := space(t)
	require.Equal(t, "a.b.timer.sweep", s.SweepTimer())
	require.Equal(t, "a.b.due.sweep", s.SweepDue())
	require.True(t, strings.HasPrefix(s.SweepTimer(), strings.TrimSuffix(s.TimerSubjects(), ">")))
	require.True(t, strings.HasPrefix(s.SweepDue(), strings.TrimSuffix(s.DueSubjects(), ">")))
}

func TestNamesOfCallsInboundMessagesAndDeadLettersReadBack(t *testing.T) {
	t.Parallel()
	s := space(t)
	rapid.Check(t, func(t *rapid.T) {
		app, chat, workflow, run, turn := rapid.String().Draw(t, "app"), rapid.String().Draw(t, "chat"),
			rapid.String().Draw(t, "workflow"), rapid.String().Draw(t, "run"), rapid.String().Draw(t, "turn")
		key := subjects.TurnKey(app, chat, run, turn)
		got, ok := subjects.ParseCall(key.String())
		require.True(t, ok, key.String())
		require.Equal(t, key, got)

		if gotRun, gotTurn, ok := subjects.ParseTurnToken(key.Turn); ok {
			require.Equal(t, []string{run, turn}, []string{gotRun, gotTurn})
		} else {
			require.True(t, strings.HasPrefix(key.Turn, "=="), key.Turn)
		}

		message := subjects.MessageToken(run, turn)
		if gotRun, gotID, ok := subjects.ParseMessageToken(message); ok {
			require.Equal(t, []string{run, turn}, []string{gotRun, gotID})
		} else {
			require.True(t, strings.HasPrefix(message, "=="), message)
		}

		subject := s.In("p", "resume", app, workflow, chat)
		in, ok := s.ParseIn(subject)
		require.True(t, ok)
		again, ok := s.InOf(in)
		require.True(t, ok, subject)
		require.Equal(t, subject, again)

		tenant, kind, ok := s.ParseDead(s.DeadOf(subject))
		require.True(t, ok)
		require.Equal(t, []string{subjects.Token(app), "resume"}, []string{tenant, kind})
	})
}

func TestNamesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	s := space(t)
	for _, key := range []string{
		"", "a.b.c", "a.b.c.0.x", "a.b.*.0", "a.b..0", "a.b.>.0", "a b.c.d.0", "e.a.b.c.0.tool_call", "a.b.c.",
		"a.b.==0123456789 123456789 1.0", "a.b.==0123456789\r\n3456789 1.0", "a.b.==012345678>123456789*1.0",
	} {
		_, ok := subjects.ParseCall(key)
		require.False(t, ok, key)
	}
	good := subjects.Inbound{Pool: "p", Kind: "resume", App: "a", Workflow: "-", Chat: "c"}
	for _, spoil := range []func(in *subjects.Inbound){
		func(in *subjects.Inbound) { in.Pool = "*" },
		func(in *subjects.Inbound) { in.Pool = strings.Repeat("p", 33) },
		func(in *subjects.Inbound) { in.Kind = "=2D" },
		func(in *subjects.Inbound) { in.App = "a.b" },
		func(in *subjects.Inbound) { in.Workflow = "" },
		func(in *subjects.Inbound) { in.Chat = ">" },
	} {
		in := good
		spoil(&in)
		_, ok := s.InOf(in)
		require.False(t, ok, "%+v", in)
	}
	for _, token := range []string{"-", "t", "0", "9-t", "-1-t", "01-rt", subjects.ReusedTurnToken("r", "t", "00ff")} {
		_, _, ok := subjects.ParseTurnToken(token)
		require.False(t, ok, token)
		_, _, ok = subjects.ParseMessageToken(token)
		require.False(t, ok, token)
	}
	for _, token := range []string{"message", "message-", "message-9-t", "message-x", subjects.TurnToken("", "message-0-t")} {
		_, _, ok := subjects.ParseMessageToken(token)
		require.False(t, ok, token)
	}
	for _, subject := range []string{"a.b.dead", "a.b.dead.x", "a.b.dead.x.y.z", "a.b.in.x.y", "a.b.dead..y"} {
		_, _, ok := s.ParseDead(subject)
		require.False(t, ok, subject)
	}
}
