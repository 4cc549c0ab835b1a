package agentjson

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// maxWork is how often a byte is looked at, at most, in addition to the one way through the text.
const maxWork = 8

// pieces are what hostile texts are made of: each begins something, ends it, or cannot be read.
func pieces() []string {
	return []string{
		"{", "}", "[", "]", `"`, "'", "“", `\"`, `\`, ":", ",", " ", "\n", "\t", "/*", "*/", "//", "#", "x", "1", "...", "NaN", "\xff",
		`{"a" `, `{"a":`, `{"a":1}`, `{"a":"}`, "{x}", "{a:'}", "{/*}", "{#}", "{'}", `{\"`, "[{", `[{"a":1}`, `[{"a":1} x`, "[1,", "[/*", `["a"`, "[[", `, "b":`,
		`,"`, `{"a":1},'`, `{"a":1}/*`, `{"a":1}#`, "<think>", "</think>", "\n</think>", "<thinking>", "[think]", "[/think]", "<|channel|>", "<|message|>", "final",
		"```", "```json", "\ufeff", "json", "True", "　", `"{`, `"</think>`, "1,", "{{",
	}
}

// TestEachByteIsLookedAtAFewTimesInAnyText counts what is read, since time depends on the machine.
func TestEachByteIsLookedAtAFewTimesInAnyText(t *testing.T) {
	t.Parallel()
	fits := func(map[string]any) bool { return true }
	rapid.Check(t, func(t *rapid.T) {
		part := func(name string) string {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces()), 0, 4).Draw(t, name), "")
			return strings.Repeat(text, rapid.SampledFrom([]int{1, 1000}).Draw(t, name+" times"))
		}
		text := part("begin") + part("middle") + part("end")
		s := search{text: text, options: Options{Fits: fits}}
		_ = s.pass()
		require.LessOrEqual(t, s.work, maxWork*len(text)+1000)
	})
}
