package docs_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	updateWords = flag.Bool("update-words", false, "lower the counts in docs/testdata/words.txt to those of the tree")
	listWords   = flag.String("words", "", "print each private word in the files whose path begins with this (. for all)")
)

// baselinePath holds one line a package: its folder, then the number of matches of each row of privateWords that it may
// still have.
const baselinePath = "testdata/words.txt"

// counts are matches of the rows of privateWords: folder → row → matches.
type counts map[string]map[string]int

// TestTextsUseTheStandardWords searches comments, literals, names and pages for words that only insiders understand. A
// folder may have at most the matches that the baseline still allows it, none without an entry there.
//
// The words and their replacements are in words_table_test.go, what is read is in words_sources_test.go.
func TestTextsUseTheStandardWords(t *testing.T) {
	t.Parallel()
	found := searchTree(t)
	for _, m := range found {
		if *listWords != "" && (*listWords == "." || strings.HasPrefix(m.path, *listWords)) {
			t.Log(m)
		}
	}
	have, allowed := countOf(found), readBaseline(t)
	for folder, rows := range have {
		for row, n := range rows {
			if n <= allowed[folder][row] {
				continue
			}
			t.Errorf("%s: %d matches of %q, at most %d allowed", folder, n, row, allowed[folder][row])
			for _, m := range found {
				if m.folder() == folder && m.row == row {
					t.Log(m)
				}
			}
		}
	}
	lower := lowered(allowed, have)
	if *updateWords {
		require.NoError(t, os.WriteFile(baselinePath, []byte(lower.String()), 0o600))
	} else {
		for folder, rows := range allowed {
			for row, n := range rows {
				if now := lower[folder][row]; now < n {
					t.Logf("%s: %s fell from %d to %d: go test ./docs -run StandardWords -update-words", folder, row, n, now)
				}
			}
		}
	}
}

// TestHelpUsesTheStandardWords searches what the commands print, which is composed of texts of several packages.
func TestHelpUsesTheStandardWords(t *testing.T) {
	t.Parallel()
	for _, command := range documentedCommands {
		s := &source{path: command + " --help"}
		s.search(1, helpOf(t, command))
		require.Empty(t, s.found, command)
	}
}

// TestEachRowOfTheWordListCanMatch shows that a row finds its example, and not its allowed form.
func TestEachRowOfTheWordListCanMatch(t *testing.T) {
	t.Parallel()
	for _, w := range privateWords {
		require.NotEmpty(t, matchesOf(w, w.example), "%s: %s", w.row, w.example)
		if w.allowed != nil {
			require.Empty(t, matchesOf(w, w.allowedExample), "%s: %s", w.row, w.allowedExample)
		}
	}
	names := []string{"toldTwice", "Mend", "lookAside", "TestNobodyIsCharged", "DESK_SIZE", "JSONDesk"}
	for _, name := range names {
		require.True(t, isPrivateName(name), name)
	}
	for _, name := range []string{"defaultSize", "planeOf", "hostOf", "Untold"} {
		require.False(t, isPrivateName(name), name)
	}
}

func countOf(found []match) counts {
	c := counts{}
	for _, m := range found {
		if c[m.folder()] == nil {
			c[m.folder()] = map[string]int{}
		}
		c[m.folder()][m.row]++
	}
	return c
}

// lowered is the baseline with the figures that fell.
func lowered(allowed, have counts) counts {
	lower := counts{}
	for folder, rows := range allowed {
		for row, n := range rows {
			if n = min(n, have[folder][row]); n > 0 {
				if lower[folder] == nil {
					lower[folder] = map[string]int{}
				}
				lower[folder][row] = n
			}
		}
	}
	return lower
}

func (c counts) String() string {
	var b strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(c)) {
		b.WriteString(folder)
		for _, row := range slices.Sorted(maps.Keys(c[folder])) {
			fmt.Fprintf(&b, " %s=%d", row, c[folder][row])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func readBaseline(t *testing.T) counts {
	t.Helper()
	data, err := os.ReadFile(baselinePath)
	require.NoError(t, err)
	allowed := counts{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		allowed[fields[0]] = map[string]int{}
		for _, f := range fields[1:] {
			row, n, _ := strings.Cut(f, "=")
			var count int
			_, err := fmt.Sscan(n, &count)
			require.NoError(t, err, line)
			allowed[fields[0]][row] = count
		}
	}
	return allowed
}
