package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// itemsOf returns what stands in backticks before the colon of each item of a page's list, over all items. The
// list follows the paragraph that ends with lead.
func itemsOf(t *testing.T, name, lead string) (found []string) {
	t.Helper()
	_, body, ok := strings.Cut(text(t, name), lead+"\n\n- ")
	require.True(t, ok, "%s: no list after %q", name, lead)
	list, _, _ := strings.Cut(body, "\n\n")
	for item := range strings.SplitSeq(list, "\n- ") {
		names, _, ok := strings.Cut(strings.Join(strings.Fields(item), " ")+" ", ": ")
		require.True(t, ok, "%s: %q has no colon", name, item)
		quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1)
		require.NotEmpty(t, quoted, "%s: %q names nothing", name, item)
		for _, m := range quoted {
			found = append(found, m[1])
		}
	}
	return found
}
