package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n",
		"größe 漢字 \u200d می\u200cخواهم\u00a0": "größe 漢字 \u200d می\u200cخواهم\u00a0",
		"\x1b]0;title\x07":         `\u001b]0;title\u0007`,
		"a\rb\x00\x7f":             `a\u000db\u0000\u007f`,
		"\u009b31m":                `\u009b31m`,
		"\x9b31m\xff":              `\u009b31m\u00ff`,
		"\u202ecod.exe\u2066":      `\u202ecod.exe\u2066`,
		"a\u2028b\ufeff\U000e0041": `a\u2028b\ufeff\udb40\udc41`,
	} {
		var out bytes.Buffer
		n, err := io.WriteString(cli.Terminal(&out), text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, want, out.String())
	}
}

func FuzzTerminalKeepsTheValueOfJSON(f *testing.F) {
	f.Add("a\u009b\u202e\x00\U000e0041")
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		e := json.NewEncoder(cli.Terminal(&out))
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(map[string]string{text: text}))
		var got map[string]string
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		text = strings.ToValidUTF8(text, "\ufffd")
		for key, value := range got {
			require.Equal(t, key, value)
		}
		require.Len(t, got, 1)
		require.False(t, strings.ContainsAny(out.String(), "\x1b\r\u009b\u202e\u2028"), text)
	})
}
