package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/subjects"
)

func TestTextsFromOutsideAreEscapedForTheTerminal(t *testing.T) {
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
		require.LessOrEqual(t, utf8.RuneCountInString(line), cli.Width)
		require.Equal(t, "      w", line[:7])
	}
	require.Equal(t, strings.Fields(text), strings.Fields(wrapped))
}

func TestTablesFitTheWidthAndKeepWhatIsCopied(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 28)
	rows := [][]string{
		{"time", "turn", "workflow", "tool", "owner", "state"},
		{"2026-11-29T07:11:55Z", "turn-1234567890", long, long, long, "answered by ada, taken in epoch 2"},
	}
	var out strings.Builder
	table(&out, 2, rows, 0, 1)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), cli.Width)
	}
	require.Contains(t, out.String(), "2026-11-29T07:11:55Z  turn-1234567890  xxx")
	require.Contains(t, out.String(), "…")
	for word := range strings.FieldsSeq("answered by ada, taken in epoch 2") {
		require.Contains(t, out.String(), word)
	}
	require.NotContains(t, out.String(), long)

	out.Reset()
	table(&out, 0, [][]string{{"a", strings.Repeat("y", 130)}, {"b"}}, 1)
	require.Equal(t, "a  "+strings.Repeat("y", 130)+"\nb\n", out.String())
}

func TestTablesWithoutATerminalHaveARowALineWithAllOfItsText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	rows := [][]string{{"turn", "tool", "details"}, {long, long, strings.Repeat("word ", 40) + "end"}}
	wide, narrow := &page{wide: true}, &page{}
	table(wide, 2, rows)
	table(narrow, 2, rows)
	require.Equal(t, 2, strings.Count(wide.String(), "\n"))
	require.Contains(t, wide.String(), "  "+long+"  "+long+"  word word ")
	require.Contains(t, wide.String(), "word end\n")
	require.Greater(t, strings.Count(narrow.String(), "\n"), 2)
	require.NotContains(t, narrow.String(), long)

	narrow.Reset()
	tableWithNotes(narrow, [][]string{{"tool", "where"}, {"a", strings.Repeat("place ", 30)}}, func(row int) { narrow.WriteString("note " + strconv.Itoa(row) + "\n") })
	require.Regexp(t, `(?s)^tool  where\nnote 0\na     place place .*\n      place .*\nnote 1\n$`, narrow.String(), "what follows a row comes after all of its lines")

	require.False(t, isTerminalWriter(&strings.Builder{}))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	t.Cleanup(func() { _ = null.Close() })
	require.False(t, isTerminalWriter(null))
}

func TestCheckFitsTheColumns(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"01-hello", "02-approval", "03-nats-service", "05-http"} {
		_, stdout, _ := atTerminal(t, "", "check", "-v", "../../examples/"+dir+"/workflows")
		require.Contains(t, stdout, "0 errors")
		for line := range strings.Lines(stdout) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), cli.Width, line)
		}
	}
}
