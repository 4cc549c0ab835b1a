package bindings_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// good is a second workflow next to a hostile one: it must work whatever the other does.
const good = "agents: {A: }\ntools: [{name: greet, agent: A, kind: go}]\n"

// H12: see docs/faults.md.
func TestHostileManifestsAreRefusedAndHarmNoOtherWorkflow(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, text, want string }{
		{"alias bomb", "tools.yaml", aliasBomb(), "values, aliases expanded"},
		{"text bomb", "tools.yaml", "a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a, ", 1000) + "1]\n", "bytes of text, aliases expanded"},
		{"key bomb", "oneturn.yaml", "a: &a {" + strings.Repeat("k", 1000) + ": 1}\nb: [" + strings.Repeat("*a, ", 5000) + "1]\n", "bytes of text, aliases expanded"},
		{"10k tools", "oneturn.yaml", "tools:\n" + strings.Repeat("- {name: t, agent: a, nats: {subject: a.b}}\n", 10_000), "tools has more than 2000 entries"},
		{"many servers", "oneturn.yaml", "servers:\n" + manyKeys(10_000), "servers has more than 2000 entries"},
		{"many headers", "tools.yaml", "tools: [{name: t, agent: a, http: {url: \"https://a.example\", headers: {" + strings.ReplaceAll(manyKeys(500), "\n", ",") + "}}}]", "headers has more than 100 entries"},
		{"many guards", "oneturn.yaml", manyGuards(), "more than 2000 guards together"},
		{"schema of a tool", "oneturn.yaml", "tools: [{name: t, agent: a, kind: go, input: {type: object, properties: {x: {$ref: \"file:///etc/passwd\"}}}}]", "cannot be used: input: "},
		{"schema of a result", "oneturn.yaml", "tools: [{name: t, agent: a, kind: go, output: {type: array, items: " + strings.Repeat("{type: array, items: ", 40) + "{}" + strings.Repeat("}", 42) + "}]", ""},
		{"large schema", "oneturn.yaml", "tools: [{name: t, agent: a, kind: go, output: {description: " + strings.Repeat("x", 300<<10) + "}}]", "at most 262144 are read"},
		{"pattern", "oneturn.yaml", "tools: [{name: t, agent: a, kind: go, input: {type: object, properties: {x: {type: string, pattern: \"((a{0,1000}){0,1000}){0,1000}\"}}}}]", "cannot be used: input: "},
		{"condition", "oneturn.yaml", "tools: [{name: t, agent: a, kind: go, guards: [{on: input, when: \"" + strings.Repeat("(", 900) + "\"}]}]", "cannot be used: a guard cannot be made"},
		{"alias of itself", "tools.yaml", "a: &a [*a]\n", "nested deeper than 64 levels"},
		{"deep list", "tools.yaml", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested deeper than 64 levels"},
		{"deep JSON", "tools.json", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested deeper than 64 levels"},
		{"python tag", "tools.yaml", "tools: !!python/object/apply:os.system [ls]\n", "is not allowed"},
		{"python tag on a scalar", "tools.yaml", "tools: !!python/name:os.system x\n", "is not allowed"},
		{"own tag", "tools.yaml", "tools: !secret x\n", `tag "!secret" is not allowed`},
		{"two documents", "tools.yaml", "a: 1\n---\nb: 2\n", "more than one YAML document"},
		{"text after JSON", "tools.json", "{}\n{}", "tools.json:2: error: the file cannot be read"},
		{"huge number", "structured_outputs.json", "{\n\"x\": 1e9999999}", "structured_outputs.json:2: error: the file cannot be read: number out of bounds"},
		{"huge YAML number", "structured_outputs.yaml", "x: 1\ny: " + strings.Repeat("9", 80) + "\n", "structured_outputs.yaml:2: error: the file cannot be read: number out of bounds"},
		{"infinity", "structured_outputs.yaml", "x: .inf\n", "not a number that JSON can hold"},
		{"broken YAML", "agents.yaml", "agents:\n  A: [\n", "agents.yaml"},
		{"broken JSON", "agents.json", "{\n\"agents\": {\n,}}", "agents.json:3: error: the file cannot be read: not JSON"},
		{"not UTF-8", "agents.json", "{\"agents\": \"\xff\"}", "not JSON"},
		{"100 MiB", "tools.yaml", "", "file is too large: over 1048576 bytes"},
		{"many keys", "agents.yaml", "agents:\n" + manyKeys(60_000), "agents has more than 2000 entries"},
		{"many agents", "oneturn.yaml", "tools:\n" + strings.Repeat("- {kind: go, name: t, agents: [a, b, c, d, e]}\n", 500), "the tools name more than 2000 agents"},
		{"a scalar", "oneturn.yaml", "just a text", "oneturn.yaml must be a map"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, filepath.Join(root, "Good", "oneturn.yaml"), good)
			name := filepath.Join(root, "Bad", tt.file)
			write(t, name, tt.text)
			if tt.text == "" {
				require.NoError(t, os.Truncate(name, 100<<20))
			}
			set := load(t, root)
			require.Contains(t, strings.Join(lines(set, diag.SeverityError), "\n"), tt.want)
			_, err := set.Resolve("Good", "A", "")
			require.NoError(t, err)
			_, err = set.Resolve("Bad", "A", "")
			require.ErrorIs(t, err, bindings.ErrNoBinding, "the workflow is known, though it is broken")
		})
	}
}

// aliasBomb is a list of ten aliases to a list of ten aliases, eleven times.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]\n")
	for c := 'b'; c <= 'k'; c++ {
		alias := fmt.Sprintf("*%c", c-1)
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.Join(slices.Repeat([]string{alias}, 10), ", "))
	}
	return b.String()
}

// manyGuards is 500 tools that share a list of guards.
func manyGuards() string {
	return "x: &g [" + strings.Repeat("{on: input, max_bytes: 1}, ", 10) + "]\ntools:\n" + strings.Repeat("- {name: t, agent: a, kind: go, guards: *g}\n", 500)
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  a%d:\n", i)
	}
	return b.String()
}

func TestUnreadableManifestIsNamedWhenATurnNeedsIt(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, "-- W/tools.yaml --\ntools: [\n"))
	_, err := set.Resolve("W", "A", "")
	require.ErrorContains(t, err, "W/tools.yaml")
	require.ErrorContains(t, err, "cannot be read")
}

// H12: see docs/faults.md.
func TestFilesOutsideTheWorkflowAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"parent", "../../other/t.py", "must be inside the workflows folder"},
		{"parent in the middle", "tools/../../../other/t.py", "must be inside the workflows folder"},
		{"absolute", "/etc/t.py", "must be inside the workflows folder"},
		{"backslash", `tools\\t.py`, "must be inside the workflows folder"},
		{"NUL", `t.py\0.py`, "must be inside the workflows folder"},
		{"link out", "link.py", "cannot be used"},
		{"link through a folder", "out/t.py", "cannot be used"},
		{"other extension", "t.sh", "must end in .py"},
		{"a folder", "folder.py", "is not a regular file"},
		{"a pipe", "pipe.py", "is not a regular file"},
		{"other letter case", "T.py", "not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, filepath.Join(root, "other", "t.py"), "def f():\n")
			dir := filepath.Join(root, "flows", "W")
			write(t, filepath.Join(dir, "oneturn.yaml"), fmt.Sprintf("tools: [{name: f, agent: A, file: \"%s\"}]\n", tt.file))
			write(t, filepath.Join(dir, "t.py"), "def f():\n")
			write(t, filepath.Join(dir, "t.sh"), "")
			require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.py"), 0o750))
			require.NoError(t, os.Symlink(filepath.Join(root, "other", "t.py"), filepath.Join(dir, "link.py")))
			require.NoError(t, os.Symlink("../../other", filepath.Join(dir, "out")))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.py"), 0o600))
			set := load(t, filepath.Join(root, "flows"))
			require.Empty(t, set.Bindings())
			require.Contains(t, strings.Join(lines(set, diag.SeverityError), "\n"), tt.want)
		})
	}
}

func TestManifestsAndFoldersOutsideTheRootAreNotRead(t *testing.T) {
	t.Parallel()
	outside := unpack(t, "-- W/oneturn.yaml --\n"+good)
	root := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(outside, "W"), filepath.Join(root, "Linked")))
	write(t, filepath.Join(root, "W", "agents.yaml"), "agents: {A: }\n")
	require.NoError(t, os.Symlink(filepath.Join(outside, "W", "oneturn.yaml"), filepath.Join(root, "W", "oneturn.yaml")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "W", "tools.yaml"), 0o600))
	set := load(t, root)
	require.Equal(t, []string{"W"}, set.Workflows())
	require.Empty(t, set.Bindings())
	text := strings.Join(lines(set, diag.SeverityError), "\n")
	require.Contains(t, text, "W/oneturn.yaml: error: the file cannot be read")
	require.Contains(t, text, "W/tools.yaml: error: the file cannot be read: tools.yaml is not a regular file")
}

func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bindings.Load(ctx, bindings.Options{Root: unpack(t, "-- W/oneturn.yaml --\n"+good)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestMissingRootIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	_, err := bindings.Load(t.Context(), bindings.Options{Root: filepath.Join(t.TempDir(), "nowhere")})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "nowhere")
}

// manyWorkflows writes n workflows of one tool with a model each.
func manyWorkflows(tb testing.TB, n int) string {
	tb.Helper()
	root := tb.TempDir()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("W%03d", i))
		require.NoError(tb, os.MkdirAll(filepath.Join(dir, "tools"), 0o750))
		for name, text := range map[string]string{
			"agents.yaml":             "agents:\n  A: {auto_tool_mode: true}\n",
			"tools.yaml":              "tools:\n- {agent: A, file: t.py, function: greet, tool_type: UI_Tool, ui: {component: C, mode: inline}}\n",
			"structured_outputs.yaml": "structured_outputs:\n  models:\n    Out:\n      type: model\n      fields:\n        name: {type: str}\n        tags: {type: list, items: str}\n  registry: {A: Out}\n",
			"tools/t.py":              "def greet(name, tags):\n    return name\n",
		} {
			require.NoError(tb, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	return root
}

func TestManyWorkflowsAreInspectedInOneCall(t *testing.T) {
	t.Parallel()
	var calls, files atomic.Int64
	set, err := bindings.Load(t.Context(), bindings.Options{
		Root: manyWorkflows(t, 500),
		Inspect: func(ctx context.Context, root string, names map[string][]byte) (map[string]bindings.PyFile, error) {
			calls.Add(1)
			files.Add(int64(len(names)))
			return inspect(ctx, root, names)
		},
	})
	require.NoError(t, err)
	require.Len(t, set.Workflows(), 500)
	require.Len(t, set.Bindings(), 500)
	require.Empty(t, set.Diagnostics())
	require.EqualValues(t, 1, calls.Load())
	require.EqualValues(t, 500, files.Load())
}

func BenchmarkLoad500Workflows(b *testing.B) {
	root := manyWorkflows(b, 500)
	for b.Loop() {
		_, err := bindings.Load(b.Context(), bindings.Options{Root: root, Inspect: inspect})
		require.NoError(b, err)
	}
}

func BenchmarkResolve(b *testing.B) {
	set, err := bindings.Load(b.Context(), bindings.Options{Root: manyWorkflows(b, 500), Inspect: inspect})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.Resolve("W250", "A", "Out"); err != nil {
			b.Fatal(err)
		}
	}
}
