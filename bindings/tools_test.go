package bindings_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

func TestMistakesInToolsAreNamedWithLineAndFix(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/tools/mistakes.txt")
	require.NoError(t, err)
	files, want, _ := strings.Cut(string(text), "-- want --\n")
	set, err := bindings.Load(t.Context(), bindings.Options{Root: unpack(t, files), Inspect: inspect, Registered: map[string]bindings.Registered{}})
	require.NoError(t, err)
	var got []string
	for _, line := range lines(set, diag.SeverityError, diag.SeverityWarning) {
		if !strings.Contains(line, "[agent_without_model]") {
			got = append(got, line)
		}
	}
	require.Equal(t, strings.TrimSpace(want), strings.Join(got, "\n"))
}
