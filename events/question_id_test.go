package events_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
)

func TestQuestionsAreNamedOrNumbered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		n       int
		ask     string
		surface string
	}{
		{"", 1, "1", "s1"},
		{"", 12, "12", "s12"},
		{"approve", 3, "approve", "s:approve"},
		{"Größe ü 1", 1, "Größe ü 1", "s:Größe ü 1"},
		{"a/b", 1, "a%2Fb", "s:a%2Fb"},
		{"a#b%2F", 1, "a%23b%252F", "s:a%23b%252F"},
		{"1", 1, "%31", "s:1"},
		{"s1", 1, "%731", "s:s1"},
		{"s:x", 1, "%73:x", "s:s:x"},
		{"s", 1, "s", "s:s"},
		{"step", 1, "step", "s:step"},
		{"a\nb\u202e", 1, "a%0Ab%E2%80%AE", "s:a%0Ab%E2%80%AE"},
		{"\xff", 1, "%FF", "s:%FF"},
	} {
		require.Equal(t, c.ask, events.AskID(c.name, c.n), "%q", c.name)
		require.Equal(t, c.surface, events.SurfaceID(c.name, c.n), "%q", c.name)
	}
	long := events.AskID(strings.Repeat("é", 300), 1)
	require.Equal(t, strings.Repeat("é", 52)+"%~", long[:106])
	require.LessOrEqual(t, len(long), events.MaxAskBytes)
	require.NotEqual(t, long, events.AskID(strings.Repeat("é", 301), 1))
}

func TestNoTwoQuestionsOfACallShareAnID(t *testing.T) {
	t.Parallel()
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`s?[0-9:%/~s]{1,4}`), rapid.StringN(100, 140, 200),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		a, b, n := names.Draw(t, "a"), names.Draw(t, "b"), rapid.IntRange(1, 99).Draw(t, "n")
		ids := map[string]string{events.AskID("", n): "number", events.SurfaceID("", n): "surface number"}
		for _, name := range slices.Compact([]string{a, b}) {
			if name == "" {
				continue
			}
			for what, id := range map[string]string{"ask ": events.AskID(name, n), "surface ": events.SurfaceID(name, n)} {
				require.NotContains(t, ids, id, "%q and %s", name, ids[id])
				ids[id] = what + name
			}
		}
		for id := range ids {
			require.LessOrEqual(t, len(id), events.MaxAskBytes)
			for _, call := range []string{"t", "a/b/c", "t@01234567", strings.Repeat("x", events.MaxIDBytes) + "@01234567"} {
				gotCall, gotAsk, ok := events.ParseQuestionID(events.QuestionID(call, id))
				require.True(t, ok, id)
				require.Equal(t, []string{call, id}, []string{gotCall, gotAsk})
			}
		}
	})
}

func TestInvalidIDOfAQuestionIsRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "/", "t", "t/", "/1", "t\n/1", "t/\x00", "t/" + strings.Repeat("x", events.MaxAskBytes+1), strings.Repeat("x", events.MaxCallIDBytes) + "/1",
	} {
		_, _, ok := events.ParseQuestionID(id)
		require.False(t, ok, "%.40q", id)
	}
}

func TestIDOfAQuestionLeadsToItsTurn(t *testing.T) {
	t.Parallel()
	for _, id := range []events.TurnID{{Turn: "t"}, {Turn: "t", Run: "r"}, {Turn: "a/b@c", Run: "r"}, {Turn: "a/1"}} {
		call := events.CallID(id, "token")
		got, ask, ok := events.ParseQuestionID(events.QuestionID(call, "1"))
		require.True(t, ok)
		require.Equal(t, "1", ask)
		require.Equal(t, id.Turn, events.TurnOfCallID(got, id.Run))
	}
	require.Equal(t, "t@01234567", events.TurnOfCallID("t@01234567", ""), "without the run it is ambiguous")
}
