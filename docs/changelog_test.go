package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangelogNamesOfTheFirstReleaseExist checks each name of Go in the section Added of the changelog, which describes
// the first release as it is: `pkg.Name`, `pkg.Type.Member`, or `Type.Member` of the front. Users can name public packages
// only.
func TestChangelogNamesOfTheFirstReleaseExist(t *testing.T) {
	t.Parallel()
	_, added, found := strings.Cut(text(t, "../CHANGELOG.md"), "\n### Added\n")
	require.True(t, found)
	added, _, found = strings.Cut(added, "\n### ")
	require.True(t, found)
	public := publicPackages(t)
	front := public["oneturn"]
	checked := 0
	for _, m := range regexp.MustCompile("`((?:[a-z]+\\.)?[A-Z]\\w+(?:\\.\\w+)?)(?:\\([^`]*\\))?`").FindAllStringSubmatch(added, -1) {
		known, name := front, m[1]
		if before, after, ok := strings.Cut(name, "."); ok && before == strings.ToLower(before) {
			known, name = public[before], after
		} else if !ok && !front.has(name) { // no name of the front, for example a variable of the environment
			continue
		}
		checked++
		require.True(t, known != nil && known.has(name), "CHANGELOG.md, Added: `%s` does not exist", m[1])
	}
	require.Greater(t, checked, 10)
}
