package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link whose text is a file name leads to a file of that name: renamed files change both.
func TestLinkTextsThatAreFileNamesNameTheirTargets(t *testing.T) {
	t.Parallel()
	found := 0
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`\[([\w/.]+\.(?:go|py|md))\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
			found++
			require.True(t, strings.HasSuffix("/"+m[2], "/"+m[1]), "%s: the link %s leads to %s", name, m[1], m[2])
		}
	}
	require.Greater(t, found, 100)
}
