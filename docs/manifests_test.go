package docs_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// folderOf writes the blocks of a page that begin with a file name, and returns the folder.
func folderOf(t *testing.T, page string) string {
	t.Helper()
	root := t.TempDir()
	files := 0
	for _, b := range blocks(t, page) {
		if m := regexp.MustCompile(`\A# (\S+/\S+\.(?:yaml|py)|tools\.oneturn\.yaml)\n`).FindStringSubmatch(b.text); m != nil {
			write(t, root, m[1], b.text)
			files++
		}
	}
	require.Positive(t, files)
	return root
}

// serve runs a worker and returns a client.
func serve(t *testing.T, c oneturn.Config) *oneturn.Client {
	t.Helper()
	return serveOn(t, oneturntest.NewServer(t), c)
}

// serveOn is serve on a given server.
func serveOn(t *testing.T, s *oneturntest.Server, c oneturn.Config) *oneturn.Client {
	t.Helper()
	s.Provision()
	work(t, s, c)
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	return client
}

// work runs a worker until the test ends.
func work(t *testing.T, s *oneturntest.Server, c oneturn.Config) {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	for _, d := range w.Bindings().Diagnostics() {
		require.Equal(t, diag.SeverityInfo, d.Severity, d.String())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

func TestManifestOfThePageRunsItsTool(t *testing.T) {
	t.Parallel()
	c := serve(t, oneturn.Config{Workflows: folderOf(t, "manifests.md")})
	turn := func(key string, quantity any) *oneturn.Turn {
		return &oneturn.Turn{
			TurnID: oneturn.TurnID{Chat: "chat-1", Turn: key}, Workflow: "Orders", Agent: "OrderAgent", Model: "Order",
			Data: map[string]any{"ItemName": "tea", "quantity": quantity},
		}
	}
	r := do(t, c, turn("t1", "2")) // a text that is an integer
	require.True(t, r.Success, r.Content)
	require.Regexp(t, `^Order [0-9a-f]{8}: 2 of tea \(normal\) for chat-1$`, r.Content)
	require.Equal(t, []string{"last_order"}, r.ContextKeys)
	r = do(t, c, turn("t2", json.Number("101")))
	require.Equal(t, "user_error: At most 100 at a time.", string(r.Code)+": "+r.Content)
}

func TestToolInGoOfThePageRuns(t *testing.T) {
	t.Parallel()
	var keys []string
	c := serve(t, oneturn.Config{Tools: []oneturn.Tool{chargeTool(func(_ context.Context, key, _ string, _ int) error {
		if keys = append(keys, key); len(keys) < 3 {
			return errBusy
		}
		return nil
	})}})
	turn := func(key string, cents json.Number, items ...any) *oneturn.Turn {
		return &oneturn.Turn{
			TurnID: oneturn.TurnID{Chat: "chat-1", Turn: key}, Workflow: "Shop", Agent: "Cashier", Model: "Charge",
			Data: map[string]any{"customer": "Ada", "cents": cents, "items": items},
		}
	}
	r := do(t, c, turn("t1", "1250", map[string]any{"name": "tea", "count": json.Number("2"), "tags": map[string]any{"size": "L"}}))
	require.Equal(t, "Thank you, Ada: 1 items, chat chat-1.", r.Content)
	require.Equal(t, 3, r.Attempts)
	require.Len(t, slices.Compact(keys), 1)
	require.Equal(t, "user_error", string(do(t, c, turn("t2", "0")).Code))
	require.Equal(t, "validation_failed", string(do(t, c, turn("t3", "1", map[string]any{"name": "tea"})).Code))
}

// TestFieldsOfACallThatThePageNamesAreThere compares with the struct.
func TestFieldsOfACallThatThePageNamesAreThere(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(text(t, "manifests.md"), "`tool.Info(ctx)` has ")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n\n")
	names := regexp.MustCompile("`([A-Z][A-Za-z.]+)`").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(names), 8)
	for _, m := range names {
		at := reflect.TypeFor[tool.CallInfo]()
		for step := range strings.SplitSeq(m[1], ".") {
			field, ok := at.FieldByName(step)
			require.True(t, ok, m[1])
			at = field.Type
		}
	}
}

// TestManifestOfThePageHasEveryKeyOfTheSchema keeps the reference whole.
func TestManifestOfThePageHasEveryKeyOfTheSchema(t *testing.T) {
	t.Parallel()
	own, err := jsonschema.CompileString("oneturn.schema.json", string(bindings.ManifestSchema()))
	require.NoError(t, err)
	shared, err := bindings.SharedSchema()
	require.NoError(t, err)
	common, err := jsonschema.CompileString("shared.schema.json", string(shared))
	require.NoError(t, err)
	var text strings.Builder
	for _, block := range append(fenced(t, "manifests.md", "yaml"), fenced(t, "context-variables.md", "yaml")...) {
		var tree any
		require.NoError(t, yaml.Unmarshal([]byte(block.text), &tree))
		if strings.HasPrefix(block.text, "# tools.oneturn.yaml\n") {
			require.NoError(t, common.Validate(tree))
		} else {
			require.NoError(t, own.Validate(tree), block.text)
		}
		text.WriteString(block.text)
	}
	manifest := text.String()

	var whole map[string]any
	require.NoError(t, json.Unmarshal(bindings.ManifestSchema(), &whole))
	keys := properties(whole)
	require.Greater(t, len(keys), 20)
	for key := range keys {
		if key != "tool" && key != "response_key" { // of triggers, which are MozaiksAI's
			require.Regexp(t, `(?m)(^|[{ ])`+key+`:`, manifest)
		}
	}
}

// properties collects the names of all properties of a schema.
func properties(schema any) map[string]bool {
	found := map[string]bool{}
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			if names, ok := value.(map[string]any); ok && key == "properties" {
				for name := range names {
					found[name] = true
				}
			}
			for name := range properties(value) {
				found[name] = true
			}
		}
	case []any:
		for _, value := range s {
			for name := range properties(value) {
				found[name] = true
			}
		}
	}
	return found
}

// TestPageNamesTheCodesOfDiagnosticsThatAreErrors compares with the source: every code of
// an error is named, and nothing else is called one.
func TestPageNamesTheCodesOfDiagnosticsThatAreErrors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../bindings/*.go")
	require.NoError(t, err)
	rules, err := filepath.Glob("../handoff/*.go")
	require.NoError(t, err)
	files = append(files, rules...)
	var codes []string
	var all strings.Builder
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			all.WriteString(text(t, file))
		}
	}
	source := all.String()
	for _, pattern := range []string{`\.(?:errorf|refusef)\((?:[^"]|"[a-z_]+"\))*?"([a-z_]+)",`, `SeverityError,(?:[^"\n]|"")*"([a-z_]+)",`} {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(source, -1) {
			codes = append(codes, m[1])
		}
	}
	slices.Sort(codes)
	named := itemsOf(t, "manifests.md", "\nError codes:")
	slices.Sort(named)
	require.Equal(t, slices.Compact(codes), named)

	for _, code := range itemsOf(t, "manifests.md", "\nWarnings to look at:") {
		require.Contains(t, source, `"`+code+`"`)
	}
}

// TestPythonOfThePageListsWhatACallHas compares the attributes with the attributes of the host.
func TestPythonOfThePageListsWhatACallHas(t *testing.T) {
	t.Parallel()
	host := text(t, "../internal/tools/python/host/api.py")
	_, slots, ok := strings.Cut(host, "__slots__ = (")
	require.True(t, ok)
	slots, _, _ = strings.Cut(slots, ")")
	_, named, ok := strings.Cut(text(t, "manifests.md"), "`oneturn.call()` has ")
	require.True(t, ok)
	named, _, _ = strings.Cut(named, ".\n")
	list := func(s, quote string) (found []string) {
		for _, m := range regexp.MustCompile(quote+`([a-z_]+)`+quote).FindAllStringSubmatch(s, -1) {
			found = append(found, m[1])
		}
		return found
	}
	require.Equal(t, list(slots, `"`), list(named, "`"))
}
