package agentjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oneturn/oneturn/agentjson"
)

// cleanText is a usual answer, as long as wanted.
func cleanText(steps int) string {
	var b strings.Builder
	b.WriteString(`{"title":"Tea shop","steps":[`)
	for i := range steps {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Buy the tea and some cups","done":false,"note":"Ask the owner \"first\",\nthen wait.","cost":12.50}`, i)
	}
	b.WriteString(`]}`)
	return b.String()
}

func BenchmarkExtract(b *testing.B) {
	clean := cleanText(800)
	for name, text := range map[string]string{
		"clean":     clean,
		"fenced":    "Here is the plan:\n```json\n" + clean + "\n```\nDoes it fit?",
		"prose":     strings.Repeat("This is what I found out about it. ", 3000) + clean,
		"repaired":  strings.ReplaceAll(clean, `"done":false`, `done: False,`[:11]),
		"braces":    strings.Repeat("{", 100_000),
		"escapes":   `{"a":"` + strings.Repeat(`\"`, 50_000) + `"}`,
		"starts":    strings.Repeat(`{"a" `, 20_000),
		"broken":    strings.Repeat(`{"a" }`, 20_000),
		"lookalike": strings.Repeat(`[{"a":1} [{`, 10_000),
		"thoughts":  strings.Repeat("<think>x</think>", 10_000) + `{"a":1}`,
		"opened":    strings.Repeat("<think><thought>x</think>", 5_000) + `{"a":1}`,
		"closed":    strings.Repeat("\n</think>{", 10_000) + `{"a":1}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = agentjson.Extract(text, agentjson.Options{})
			}
		})
	}
}
