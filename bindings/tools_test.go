package bindings_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
)

func TestMistakesInToolsAreNamedWithLineAndMend(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/tools/mistakes.txt")
	require.NoError(t, err)
	files, want, _ := strings.Cut(string(text), "-- want --\n")
	set := load(t, unpack(t, files))
	var got []string
	for _, line := range lines(set, bindings.SeverityError, bindings.SeverityWarning) {
		if !strings.Contains(line, "[agent_without_model]") {
			got = append(got, line)
		}
	}
	require.Equal(t, strings.TrimSpace(want), strings.Join(got, "\n"))
}
