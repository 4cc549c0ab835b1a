package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rowOf is an entry of the lists with its continuation lines. It begins with F07, or H06–H09.
var rowOf = regexp.MustCompile(`(?m)^- \*\*([FH])(\d\d)(?:–[FH](\d\d))?\*\* .*(?:\n {2}.*)*`)

// TestEveryFaultRowIsShownByTestsThatNameIt checks docs/faults.md against the tests: every entry
// exists, and every test and chaos scenario that it cites names the entry in its comment, name or body.
func TestEveryFaultRowIsShownByTestsThatNameIt(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range rowOf.FindAllStringSubmatch(text(t, "faults.md"), -1) {
		entry, row := m[0], m[1]+m[2]
		rows := []string{row}
		if m[3] != "" {
			rows = append(rows, m[1]+m[3])
		}
		for _, r := range between(m[1], m[2], m[3]) {
			require.False(t, seen[r], "%s is there twice", r)
			seen[r] = true
		}
		file, shown := "", 0
		for _, c := range regexp.MustCompile("\\]\\(([^)]+_test\\.go)\\)|`(Test[A-Za-z0-9]+)`|`([a-z0-9]+(?:-[a-z0-9]+)+)`").FindAllStringSubmatch(entry, -1) {
			switch {
			case c[1] != "":
				file = text(t, filepath.FromSlash(c[1]))
				continue
			case c[2] != "":
				named := function(t, file, c[2])
				for _, r := range rows {
					require.Contains(t, named, r, "%s does not state that it shows %s", c[2], r)
				}
			default:
				scenario := regexp.MustCompile(`\{"` + c[3] + `", "([^"]+)"`).FindStringSubmatch(file)
				require.NotNil(t, scenario, "%s: no scenario %s", row, c[3])
				require.Contains(t, scenario[1], row, c[3])
			}
			shown++
		}
		require.True(t, shown > 0 || strings.Contains(entry, "comes with"), "%s is shown by nothing", row)
	}
	for n := 1; n <= 30; n++ {
		require.True(t, seen[fmt.Sprintf("F%02d", n)], "F%02d is missing", n)
	}
	for n := 1; n <= 19; n++ {
		require.True(t, seen[fmt.Sprintf("H%02d", n)], "H%02d is missing", n)
	}
}

// between returns the rows from one number to another.
func between(letter, first, last string) []string {
	var from, to int
	_, _ = fmt.Sscan(strings.TrimLeft(first, "0"), &from) // two digits, or the row would not be one
	if _, err := fmt.Sscan(strings.TrimLeft(last, "0"), &to); err != nil {
		to = from
	}
	var rows []string
	for n := from; n <= to; n++ {
		rows = append(rows, fmt.Sprintf("%s%02d", letter, n))
	}
	return rows
}

// function returns the comment, head and body of a function.
func function(t *testing.T, file, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)(?:^|\n)((?://[^\n]*\n)*func ` + name + `\(.*?\n\})\n`).FindStringSubmatch(file)
	require.NotNil(t, m, "no function %s", name)
	return m[1]
}

// TestEveryScenarioOfChaosIsInTheTableOfFaults checks that docs/faults.md names every scenario.
func TestEveryScenarioOfChaosIsInTheTableOfFaults(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/test/chaos/*_test.go")
	require.NoError(t, err)
	page, found := text(t, "faults.md"), 0
	for _, file := range files {
		for _, m := range regexp.MustCompile(`\{"([a-z0-9-]+)", "(F\d\d[^"]*)"`).FindAllStringSubmatch(text(t, file), -1) {
			require.Contains(t, page, "`"+m[1]+"`", "scenario of %s", m[2])
			found++
		}
	}
	require.Greater(t, found, 15)
}
