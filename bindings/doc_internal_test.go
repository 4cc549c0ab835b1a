package bindings

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachFileIsListedAndEachListedFileExists reads the lists of the package comments: of this package, with the places
// where MozaiksAI's behavior is kept in the whole repository, and of model.
func TestEachFileIsListedAndEachListedFileExists(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "model"} {
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		require.NoError(t, err)
		listed := map[string]bool{}
		_, lists, found := strings.Cut(string(text), "// # Files\n")
		require.True(t, found)
		for _, name := range regexp.MustCompile(`[a-z_0-9/*]+\.(?:go|py)\b`).FindAllString(lists, -1) {
			here, err := filepath.Glob(filepath.Join(dir, name))
			require.NoError(t, err)
			elsewhere, err := filepath.Glob(filepath.Join("..", name))
			require.NoError(t, err)
			require.NotEmpty(t, append(here, elsewhere...), name)
			for _, file := range here {
				listed[file] = true
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			require.True(t, listed[file] || regexp.MustCompile(`_test\.go$|doc\.go$`).MatchString(file), "%s is not listed in doc.go", file)
		}
	}
}
