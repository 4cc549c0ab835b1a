package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var lead = regexp.MustCompile("^- (`[^`]+`(?:, `[^`]+`)*):(?: |\n)")

// leads returns the names in backticks that the items of a page's list begin with. All items under the heading
// have to begin so.
func leads(t *testing.T, name, heading string) []string {
	t.Helper()
	_, body, ok := strings.Cut(text(t, name), "\n"+heading+"\n")
	require.True(t, ok, "%s: no heading %s", name, heading)
	var found []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			break
		}
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := lead.FindStringSubmatch(line)
		require.NotNil(t, m, "%s: an item that does not begin with a name and a colon: %s", name, line)
		found = append(found, strings.Split(strings.Trim(m[1], "`"), "`, `")...)
	}
	require.NotEmpty(t, found)
	return found
}
