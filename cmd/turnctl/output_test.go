package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

func TestNothingFromOutsideReachesTheTerminalRaw(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain äöü 日本":    "plain äöü 日本",
		"\x1b[31mred":     `\x1b[31mred`,
		"a\nb\tc":         `a\nb\tc`,
		"bad \xff byte":   `bad \xff byte`,
		"real \ufffd one": "real \ufffd one",
		"rtl \u202e text": `rtl \u202e text`,
		"csi \u009b31m":   `csi \u009b31m`,
	} {
		require.Equal(t, want, clean(text, 100))
	}
	require.Equal(t, "日本…", clean("日本語", 2))

	s := newServer(t)
	key := subjects.TurnKey("default", "c", "", "t")
	ids := `"app_id":"default","chat_id":"c","turn":"t\u001b[2J"`
	record(t, s, key.Public("tool_call"), nil, `{"type":"chat.tool_call","data":{"tool_name":"x\u001b[31m",`+ids+`,"payload":{"tool_args":{"a":"\u009b31m"}}}}`)
	record(t, s, key.Public("tool_response"), nil, `{"type":"chat.tool_response","data":{"status":"ok\u001b","content":"\u001b[31mred",`+ids+`}}`)
	for _, args := range [][]string{{"show", "c", "t", "--payload"}, {"ls"}} {
		text := ok(t, s, args...)
		require.Contains(t, text, `x\x1b[31m`)
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\u009b")
	}
}

func TestWrapKeepsWithinTheWidthAndLosesNothing(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("wörd ", 60)
	wrapped := wrap(text, 6)
	for line := range strings.SplitSeq(wrapped, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), width)
		require.Equal(t, "      w", line[:7])
	}
	require.Equal(t, strings.Fields(text), strings.Fields(wrapped))
}
