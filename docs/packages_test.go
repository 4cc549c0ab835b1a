package docs_test

import (
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImportsRunOneWay reads the table of packages in AGENTS.md: every package is at most imported by
// those that stand further down.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	const module = "github.com/oneturn/oneturn"
	order := tableOfPackages(t)
	for name, at := range order {
		p, err := build.ImportDir(filepath.Join("..", name), 0)
		require.NoError(t, err, "AGENTS.md names package %q", name)
		for _, imported := range p.Imports {
			if other, ours := strings.CutPrefix(imported, module); ours {
				other = strings.TrimPrefix(other, "/")
				above, listed := order[other]
				require.True(t, !listed || above <= at, "%q imports %q, which stands further down in the table of AGENTS.md", name, other)
			}
		}
	}
}

// tableOfPackages returns the row of each package of the table in AGENTS.md. The root has the name "".
func tableOfPackages(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../AGENTS.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| package | holds |")
	require.True(t, found)
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	order := map[string]int{}
	for at, row := range strings.Split(table, "\n") {
		cell := strings.Split(row, "|")[1]
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			name := m[1]
			if strings.HasSuffix(cell, "(root) ") {
				name = ""
			}
			require.NotContains(t, order, name)
			order[name] = at
		}
	}
	require.Greater(t, len(order), 40)
	return order
}
