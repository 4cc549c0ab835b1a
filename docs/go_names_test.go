package docs_test

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names of Go that pages have in backticks. A page may name a public package, a name of it (`tool.Ask`,
// `oneturn.ClientOptions{…}`) or a member of a type (`Client.Answer`).

// publicPackages returns the packages that users may import, by name.
func publicPackages(t *testing.T) map[string]*goPackage {
	t.Helper()
	folders, _ := parseModule(t, token.NewFileSet())
	found := map[string]*goPackage{}
	for key, p := range folders {
		folder, name, _ := strings.Cut(key, " ")
		if !strings.Contains(folder, "internal") && !strings.HasPrefix(folder, "../examples") && name != "main" && !strings.HasSuffix(name, "_test") {
			found[name] = p
		}
	}
	return found
}

// pythonErrors are the exceptions of the Python module oneturn, which pages qualify in the same way.
func pythonErrors(t *testing.T) map[string]bool {
	t.Helper()
	source, err := os.ReadFile("../internal/tools/python/host/api.py")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^class (\w+)\(Exception\)`).FindAllStringSubmatch(string(source), -1) {
		found[m[1]] = true
	}
	require.NotEmpty(t, found)
	return found
}

var (
	inBackticks   = regexp.MustCompile("`([^`\n]+)`")
	qualifiedName = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	exportedName  = regexp.MustCompile(`^[A-Z]\w*[a-z]\w*(?:\.[A-Z]\w*)?$`)
)

// TestGoNamesThatPagesQualifyExist checks what pages state about public packages, except the changelog, which has former names.
func TestGoNamesThatPagesQualifyExist(t *testing.T) {
	t.Parallel()
	public, python := publicPackages(t), pythonErrors(t)
	checked := 0
	for name, text := range pages(t) {
		if strings.HasSuffix(name, "CHANGELOG.md") {
			continue
		}
		for _, span := range inBackticks.FindAllStringSubmatch(prose(text), -1) {
			for _, m := range qualifiedName.FindAllStringSubmatch(span[1], -1) {
				p := public[m[1]]
				if p == nil || m[1] == "oneturn" && python[m[2]] {
					continue
				}
				checked++
				require.True(t, p.has(m[2]), "%s: `%s`: package %s has no %s", name, span[1], m[1], m[2])
			}
		}
	}
	require.Greater(t, checked, 25)
}

// TestGoNamesOfThePageOnTestingExist checks names that the page on the test kit has without a package, in tables too.
func TestGoNamesOfThePageOnTestingExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("testing.md")
	require.NoError(t, err)
	public := publicPackages(t)
	known := map[string]bool{}
	for _, name := range []string{"oneturntest", "oneturn"} {
		for declared := range maps.Keys(public[name].names) {
			known[declared] = true
			if _, member, ok := strings.Cut(declared, "."); ok {
				known[member] = true
			}
		}
	}
	checked := 0
	for _, span := range inBackticks.FindAllStringSubmatch(prose(string(page)), -1) {
		facts := strings.TrimPrefix(span[1], "facts.") // the variable of the examples
		if name, _, _ := strings.Cut(facts, " "); exportedName.MatchString(name) && ast.IsExported(name) {
			checked++
			require.True(t, known[name], "testing.md: `%s`: package oneturntest has no %s", span[1], name)
		}
	}
	require.Greater(t, checked, 25)
}
