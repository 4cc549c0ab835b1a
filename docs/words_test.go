package docs_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var wordsBelow = flag.String("words", "", "report private words only in files whose path begins with this")

// TestTextsUseTheStandardWords searches comments, literals, names and pages for words that only insiders understand.
//
// The words and their replacements are in words_table_test.go, what is read is in words_sources_test.go.
func TestTextsUseTheStandardWords(t *testing.T) {
	t.Parallel()
	for _, m := range searchTree(t) {
		if strings.HasPrefix(m.path, *wordsBelow) {
			t.Error(m)
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
	s := &source{path: "a_test.go"}
	s.identifier(1, "TestAnswersAreNoQuestions")
	require.Len(t, s.found, 1)
}
