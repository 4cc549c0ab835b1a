package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// matches reports whether a filter of NATS takes a subject.
func matches(filter, subject string) bool {
	want, got := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(got) > i
		case i >= len(got), token != "*" && token != got[i]:
			return false
		}
	}
	return len(want) == len(got)
}

func TestNamesOfQuestionsReadBack(t *testing.T) {
	t.Parallel()
	s := space(t)
	rapid.Check(t, func(t *rapid.T) {
		app, chat, run, turn, ask := rapid.String().Draw(t, "app"), rapid.String().Draw(t, "chat"), rapid.String().Draw(t, "run"),
			rapid.String().Draw(t, "turn"), rapid.String().Draw(t, "ask")
		key := subjects.TurnKey(app, chat, run, turn)

		timer, due := s.AskTimer(key, ask), s.AskDue(key, ask)
		for subject, parse := range map[string]func(string) (subjects.Key, string, bool){timer: s.ParseAskTimer, due: s.ParseAskDue} {
			got, token, ok := parse(subject)
			require.True(t, ok, subject)
			require.Equal(t, key, got)
			require.Equal(t, subjects.Token(ask), token)
		}
		require.True(t, matches(s.TimerSubjects(), timer))
		require.True(t, matches(s.DueSubjects(), due))
		_, _, ok := s.ParseAskDue(timer)
		require.False(t, ok)

		asked := key.Public(events.RecordAsk, subjects.Token(ask))
		appToken := subjects.Token(app)
		filter := subjects.QuestionsOfChat(appToken, chat)
		require.True(t, matches(filter, asked))
		for _, kind := range []string{events.RecordAck, events.RecordShow, events.RecordDismiss, "tool_call"} {
			require.False(t, matches(filter, key.Public(kind, subjects.Token(ask))))
		}
		require.False(t, matches(filter, key.Private(events.RecordAsk, subjects.Token(ask))))
		require.False(t, matches(subjects.QuestionsOfChat(appToken, chat+"2"), asked))

		acked := s.EventOfTurn(key, events.RecordAck+"."+subjects.Token(ask))
		require.True(t, matches(s.Acks(), acked))
		require.False(t, matches(s.Acks(), s.EventOfTurn(key, events.RecordAsk+"."+subjects.Token(ask))))
		record, ok := s.EventRecord(acked)
		require.True(t, ok)
		require.Equal(t, subjects.Record{Key: key, Kind: events.RecordAck, ID: subjects.Token(ask)}, record)
	})
	key := subjects.TurnKey("a", "c", "", "t")
	require.Equal(t, "a.b.timer.ask.a.c.0-t.0.1", s.AskTimer(key, "1"))
	require.Equal(t, "a.b.due.ask.a.c.0-t.0.s=3Ax", s.AskDue(key, "s:x"))
	require.Equal(t, "a.b.events.*.*.*.*.ack.*", s.Acks())
	require.Equal(t, "e.a.c.*.*.ask.*", subjects.QuestionsOfChat("a", "c"))
}

func TestNamesThatAreOfNoQuestionAreRefused(t *testing.T) {
	t.Parallel()
	s := space(t)
	for _, subject := range []string{
		"", "a.b.due.ask", "a.b.due.ask.", "a.b.due.ask.a.c.0-t.0", "a.b.due.ask.a.c.0-t.0.", "a.b.due.ask.a.c.0-t.0.1.2", "a.b.due.ask.a.c.0-t.0.*",
		"a.b.due.ask.a.*.0-t.0.1", "a.b.due.ask.a..0-t.0.1", "a.b.due.ask.a.c.0-t.0.=2f", "a.b.due.ask.>", "x.due.ask.a.c.0-t.0.1", "a.b.due.sweep",
	} {
		_, _, ok := s.ParseAskDue(subject)
		require.False(t, ok, subject)
		_, _, ok = s.ParseAskTimer(strings.Replace(subject, ".due.", ".timer.", 1))
		require.False(t, ok, subject)
	}
	for _, subject := range []string{"", "a.b.events", "a.b.events.a.c.0-t.0", "a.b.events.a.c.0-t.0.ack.*", "x.events.a.c.0-t.0.ack.1", "a.b.eventsa.c.0-t.0.ack.1"} {
		_, ok := s.EventRecord(subject)
		require.False(t, ok, subject)
	}
}

// FuzzParseAsk: whatever parses is made of tokens that ids have, and is built again as it was.
func FuzzParseAsk(f *testing.F) {
	for _, s := range []string{
		"oneturn.due.ask.a.c.0-t.0.1", "oneturn.timer.ask.a.c.0-t.0.s=3Ax", "oneturn.due.ask.>", "oneturn.due.ask.a.*.0-t.0.1", "oneturn.events.a.c.0-t.0.ack.1",
		"oneturn.due.ask.....", "oneturn.due.ask.a.c.==0123456789012345678901.0.-", "\xff", "_INBOX.x", "_INBOX.>",
	} {
		f.Add(s)
	}
	space, err := subjects.New("oneturn")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		if k, token, ok := space.ParseAskDue(s); ok {
			requireTokens(t, s, "oneturn", "due", "ask", k.App, k.Chat, k.Turn, k.Call, token)
			require.False(t, strings.ContainsAny(s, "*> \r\n"), s)
			if ask, hashed, err := subjects.Untoken(token); err == nil && !hashed {
				require.Equal(t, s, space.AskDue(k, ask))
			}
		}
		if k, token, ok := space.ParseAskTimer(s); ok {
			requireTokens(t, s, "oneturn", "timer", "ask", k.App, k.Chat, k.Turn, k.Call, token)
		}
		if r, ok := space.EventRecord(s); ok {
			requireTokens(t, s, strings.Split(space.EventOfTurn(r.Key, r.Kind+"."+r.ID), ".")...)
		}
		if space.MayReply(s) {
			require.Regexp(t, `^(_INBOX(_[A-Za-z0-9_-]*)?|_R_)\.`, s)
			require.False(t, strings.ContainsAny(s, "*> \r\n\x00"), s)
		}
	})
}
