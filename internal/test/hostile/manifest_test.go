package hostile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
)

// TestH08H12ManifestsAreReadWithinTheirBudget: a folder of what a manifest can hold that is not a manifest. That each is refused, and harms no other workflow, is in bindings/hostile_test.go.
// The budget is three times the budget of a message: the largest YAML that is read, a mebibyte, is a
// node for every two bytes, and it is read at the start and after an edit only.
func TestH08H12ManifestsAreReadWithinTheirBudget(t *testing.T) { //nolint:paralleltest // measures the process
	list := func(unit string, n int) string { return strings.Join(slices.Repeat([]string{unit}, n), ", ") }
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [" + list("x", 10) + "]\n")
	for i := 1; i < 12; i++ {
		name, before := string(rune('a'+i)), "*a0"
		if i > 1 {
			before = "*" + string(rune('a'+i-1))
		}
		bomb.WriteString(name + ": &" + name + " [" + list(before, 10) + "]\n")
	}
	for _, m := range []struct{ name, file, text string }{
		{"H12 alias bomb", "tools.yaml", bomb.String()},
		{"H12 alias bomb as merge keys", "tools.yaml", "a: &a {x: 1}\nb:\n" + strings.Repeat("  - <<: *a\n", 20_000)},
		{"H12 100 MiB", "tools.yaml", ""},
		{"H12 a mebibyte of brackets", "tools.yaml", strings.Repeat("[", 1<<20-1)},
		{"H12 a mebibyte of JSON brackets", "tools.json", strings.Repeat("[", 1<<20-1)},
		{"H12 a mebibyte of keys", "agents.yaml", "agents:\n" + strings.Repeat("  a: 1\n", 140_000)},
		{"H12 a mebibyte of indents", "agents.yaml", indents(1000)},
		{"H12 a mebibyte of tags", "agents.yaml", "a: " + strings.Repeat("!!python/object/apply:os.system ", 30_000)},
		{"H12 a mebibyte in one line", "agents.yaml", "a: " + strings.Repeat("x", 1<<20-10)},
		{"H08 a schema that doubles", "oneturn.yaml", "models: {M: " + doubling("allOf") + "}\ntools: [{name: t, agent: A, kind: go, model: M}]\n"},
		{"H09 patterns", "oneturn.yaml", `models: {M: {type: object, properties: {` + list(`a: {pattern: "(x{1000}){1000}"}`, 1) + `}}}` + "\n"},
		{"H05 numbers", "structured_outputs.json", `{"structured_outputs":{"models":{"M":{"fields":{"a":{"type":"int","default":1e9999999}}}}}}`},
	} {
		root := t.TempDir()
		name := filepath.Join(root, "W", m.file)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
		require.NoError(t, os.WriteFile(name, []byte(m.text), 0o600))
		if m.text == "" {
			require.NoError(t, os.Truncate(name, 100<<20))
		}
		var set *bindings.Set
		var err error
		withinTimes(t, 3, processCPU, m.name, func() { set, err = bindings.Load(t.Context(), bindings.Options{Root: root}) })
		require.NoError(t, err, m.name)
		require.Empty(t, set.Bindings(), m.name)
		for _, d := range set.Diagnostics() {
			require.Less(t, len(d.String()), 4096, m.name)
		}
	}
}

// indents is a map in a map, n deep.
func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
