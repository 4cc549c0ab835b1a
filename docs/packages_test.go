package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forTests are packages that any test may import, wherever they stand in the table: what is made for tests, and
// the front (""). Tests of sweeps have timers deliver them.
var forTests = regexp.MustCompile(`^(|oneturntest|embedded|provision|internal/timers|internal/test/.*)$`)

// TestImportsRunOneWay reads the table of packages in AGENTS.md: it has every package, and every package imports
// those only that come before it. Files of all build tags count, and tests as well, which may besides import
// what is made for tests.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	const module = "github.com/oneturn/oneturn"
	order := tableOfPackages(t)
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".."
		if d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		name := packageOf(path)
		at, listed := order[name]
		require.True(t, listed, "%s: package %q has no row in the table of AGENTS.md", path, name)
		seen[name] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
			if !ours {
				continue
			}
			other := packageOf(strings.TrimPrefix(imported+"/x.go", "/"))
			above, listed := order[other]
			require.True(t, listed, "%s imports package %q, which has no row in the table of AGENTS.md", path, other)
			if strings.HasSuffix(path, "_test.go") && (forTests.MatchString(other) || other == name) {
				continue
			}
			require.True(t, above < at || other == name, "%s imports %q, which does not come before %q in the table of AGENTS.md", path, other, name)
		}
		return nil
	}))
	for name := range order {
		require.True(t, seen[name], "AGENTS.md names package %q, which has no Go file", name)
	}
}

// packageOf returns the package of a file as the table names it: the root is "", the programs below examples are one.
func packageOf(path string) string {
	dir := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
	if strings.HasPrefix(dir, "examples/") && dir != "examples/demo" {
		return "examples/*"
	}
	return strings.TrimPrefix(dir, ".")
}

// tableOfPackages returns the place of each package in the table in AGENTS.md: by row, and from left to right within
// one. The root has the name "".
func tableOfPackages(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../AGENTS.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| package | holds |")
	require.True(t, found)
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	order := map[string]int{}
	for row := range strings.SplitSeq(table, "\n") {
		cell := strings.Split(row, "|")[1]
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			name := m[1]
			if strings.HasSuffix(cell, "(root) ") {
				name = ""
			}
			require.NotContains(t, order, name)
			order[name] = len(order)
		}
	}
	require.Greater(t, len(order), 40)
	return order
}
