package bindings_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// archive is a set of small files in one text: "-- name --" starts each.
type archive map[string]string

func parseArchive(text string) archive {
	files := make(archive)
	name := ""
	for line := range strings.Lines(text) {
		if head, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(head, " --") {
			name = strings.TrimSuffix(head, " --")
			files[name] = ""
			continue
		}
		if name != "" {
			files[name] += line
		}
	}
	return files
}

// unpack writes an archive into a new folder and returns the folder.
func unpack(tb testing.TB, text string) string {
	tb.Helper()
	root := tb.TempDir()
	for name, content := range parseArchive(text) {
		write(tb, filepath.Join(root, filepath.FromSlash(name)), content)
	}
	return root
}

func write(tb testing.TB, name, text string) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(name), 0o750))
	require.NoError(tb, os.WriteFile(name, []byte(text), 0o600))
}

func load(t *testing.T, root string) *bindings.Set {
	t.Helper()
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: inspect})
	require.NoError(t, err)
	return set
}

// lines gives the diagnostics of a severity as text.
func lines(set *bindings.Set, severities ...diag.Severity) []string {
	var all []string
	for _, d := range set.Diagnostics() {
		for _, s := range severities {
			if d.Severity == s {
				all = append(all, d.String())
			}
		}
	}
	return all
}

// inspect reads signatures that stand on one line, which is all that the fixtures have. The
// real one asks Python and is tested in package python.
func inspect(_ context.Context, root string, files map[string][]byte) (map[string]bindings.PyFile, error) {
	def := regexp.MustCompile(`(?m)^(async )?def (\w+)\((.*)\):`)
	env := regexp.MustCompile(`os\.environ\["(\w+)"\]`)
	imports := regexp.MustCompile(`(?m)^(?:import|from) (\w+)`)
	modules := regexp.MustCompile(`^(?:import|from) ([\w.]+)`)
	found := make(map[string]bindings.PyFile)
	for name, data := range files {
		if data == nil {
			var err error
			if data, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				return nil, err
			}
		}
		text := string(data)
		f := bindings.PyFile{Functions: make(map[string]bindings.PyFunc), Dynamic: strings.Contains(text, "import *")}
		if strings.Contains(text, "def (") {
			f.Error, f.ErrorLine = "invalid syntax", 1
		}
		for _, m := range def.FindAllStringSubmatch(text, -1) {
			f.Functions[m[2]] = bindings.PyFunc{Params: params(m[3]), Async: m[1] != "", Asks: strings.Contains(text, "use_ui_tool(")}
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			f.Imports = append(f.Imports, m[1])
		}
		f.Modules = map[string]int{}
		for i, line := range strings.Split(text, "\n") {
			if m := modules.FindStringSubmatch(line); m != nil {
				f.Modules[m[1]] = i + 1
			}
		}
		for _, m := range env.FindAllStringSubmatch(text, -1) {
			f.EnvNames = append(f.EnvNames, m[1])
		}
		found[name] = f
	}
	return found, nil
}

// params reads the parameters of a one-line signature.
func params(list string) []bindings.Param {
	var all []bindings.Param
	kind := bindings.Positional
	for part := range strings.SplitSeq(list, ",") {
		name, _, hasDefault := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "":
		case name == "*":
			kind = bindings.KeywordOnly
		case name == "/":
			for i := range all {
				all[i].Kind = bindings.PositionalOnly
			}
		case strings.HasPrefix(name, "**"):
			all = append(all, bindings.Param{Name: name[2:], Kind: bindings.VarKeyword})
		case strings.HasPrefix(name, "*"):
			kind = bindings.KeywordOnly
			all = append(all, bindings.Param{Name: name[1:], Kind: bindings.VarPositional})
		default:
			all = append(all, bindings.Param{Name: name, Kind: kind, HasDefault: hasDefault})
		}
	}
	return all
}
