package docs_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Widths of documents, in characters: they are read in editors and in diffs.
const (
	maxLine  = 200
	maxTable = 100
)

// TestDocumentsFitTheirWidth checks every line but events in JSON lines, and the rows of tables.
func TestDocumentsFitTheirWidth(t *testing.T) {
	t.Parallel()
	documents := pages(t)
	for _, name := range []string{"../AGENTS.md", "../CONTRIBUTING.md", "../SECURITY.md"} {
		documents[name] = text(t, name)
	}
	for name, page := range documents {
		inBlock, event, line := false, false, 0
		for row := range strings.Lines(page) {
			line++
			if strings.HasPrefix(row, "```") {
				inBlock, event = !inBlock, row == "```jsonl\n"
			}
			if event { // has to be one line
				continue
			}
			width, limit := utf8.RuneCountInString(strings.TrimSuffix(row, "\n")), maxLine
			if strings.HasPrefix(row, "|") && !inBlock {
				limit = maxTable
			}
			require.LessOrEqual(t, width, limit, "%s:%d", name, line)
		}
	}
}
