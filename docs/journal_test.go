package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rulesOfTheJournal is how many rules the page of the journal has: comments in the code refer to them by number.
const rulesOfTheJournal = 18

func TestEachRuleOfTheJournalPageHasItsAnchorItsCodeAndItsTest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("journal.md")
	require.NoError(t, err)
	_, rules, found := strings.Cut(string(text), "\n## Rules\n")
	require.True(t, found)
	rules, _, found = strings.Cut(rules, "\n## ")
	require.True(t, found)
	sections := strings.Split(rules, "\n<a id=\"rule-")[1:]
	require.Len(t, sections, rulesOfTheJournal)
	for i, section := range sections {
		require.Regexp(t, fmt.Sprintf(`^%d"></a>\n### Rule %d: [a-z]`, i+1, i+1), section)
		require.Regexp(t, `(?m)^Code: .*\.go\)`, section, "rule %d", i+1)
		require.Regexp(t, "(?m)^Test: .*_test\\.go\\) `Test", section, "rule %d", i+1)
	}
}

// A comment may cite any heading of the page. The rules are cited where they are enforced.
func TestRulesThatCommentsCiteAreOnTheJournalPage(t *testing.T) {
	t.Parallel()
	known, cited := anchors(text(t, "journal.md")), map[string]int{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`journal\.md#([a-z0-9-]+)`).FindAllStringSubmatch(string(data), -1) {
			require.Contains(t, known, m[1], path)
			cited[filepath.ToSlash(filepath.Dir(path))]++
		}
		return err
	}))
	require.Positive(t, cited["../idempotency"])
}

// TestEachKindOfRecordIsInTheTableOfTheJournalPage reads the kinds from the code, so that no new one is forgotten.
func TestEachKindOfRecordIsInTheTableOfTheJournalPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("journal.md")
	require.NoError(t, err)
	kinds := 0
	code, err := os.ReadFile("../events/record_kinds.go")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^\tRecord[A-Z]\w+\s+= (?:Kind(\w+)|"([a-z_]+)")`).FindAllStringSubmatch(string(code), -1) {
		kind := m[2]
		if m[1] != "" { // an event
			kind = strings.ToLower(regexp.MustCompile(`\B[A-Z]`).ReplaceAllString(m[1], "_$0"))
		}
		kinds++
		require.Regexp(t, "(?m)^\\| (?:`[^`]+`, )?`"+kind+"(?:\\.<[a-z]+>)?`[^|]* \\| (?:public|private) \\|", string(page), "kind %s", kind)
	}
	const known = 21
	require.Equal(t, known, kinds)
}
