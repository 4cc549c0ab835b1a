// Package docs_test runs what the pages of this folder show.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// page returns the text of the page about MozaiksAI.
func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("mozaiksai.md")
	require.NoError(t, err)
	return string(data)
}

// table returns the cells of the table whose header is the given line, at least some rows.
func table(t *testing.T, header string) [][]string {
	t.Helper()
	_, body, ok := strings.Cut(page(t), "\n"+header+"\n")
	require.True(t, ok, "no table %s", header)
	var rows [][]string
	for line := range strings.Lines(body) {
		inner, isRow := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !isRow && !strings.HasPrefix(line, "|") {
			break
		}
		if isRow {
			rows = append(rows, strings.Split(strings.TrimSuffix(inner, " |"), " | "))
		}
	}
	require.Greater(t, len(rows), 3)
	for _, row := range rows {
		require.Len(t, row, strings.Count(header, " | ")+1, "%q", row)
	}
	return rows
}

// code returns what stands between the backticks of a cell.
func code(cell string) string { return strings.Trim(cell, "` ") }

func decode(t *testing.T, text string) any {
	t.Helper()
	v, err := events.Decode([]byte(text))
	require.NoError(t, err, text)
	return v
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	v, ok := decode(t, text).(map[string]any)
	require.True(t, ok, text)
	return v
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func load(t *testing.T, root string) *bindings.Set {
	t.Helper()
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: python.Inspector("")})
	require.NoError(t, err)
	for _, d := range set.Diagnostics() {
		require.Equal(t, diag.SeverityInfo, d.Severity, d.String())
	}
	return set
}

func TestKeysThatThePageShowsAreRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, block := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		write(t, root, block[1], block[2])
	}
	write(t, root, "Support/agents.yaml", "agents: {TicketAgent: {auto_tool_mode: true}}")
	write(t, root, "Support/structured_outputs.yaml",
		"models: {Ticket: {type: model, fields: {title: {type: str}}}}\nregistry: {TicketAgent: Ticket}")
	write(t, root, "Support/tools/ticket.py", "def open_ticket(title):\n    return title\n")
	write(t, root, "Trip/tools/hotels.py", "def find_hotels(city):\n    return {'hotels': []}\n")
	set := load(t, root)
	plan, err := set.Resolve("Trip", "Planner", "")
	require.NoError(t, err)
	require.Equal(t, bindings.KindPlan, plan.Program.Kind)
	b, err := set.Resolve("Support", "TicketAgent", "Ticket")
	require.NoError(t, err)
	require.Equal(t, bindings.EffectKeyed, b.Effect)
	require.Equal(t, 30*time.Second, b.Timeout)
	require.Equal(t, 3, b.MaxAttempts)
	require.Equal(t, "TicketCard inline", b.Component+" "+b.Display)
	require.True(t, b.RunOnKeyReuse)
	require.True(t, b.CompatSilent)
}

func TestFlagsThatThePageNamesExist(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	require.NoError(t, config.BindFlags(flags, &config.Worker{}))
	named := regexp.MustCompile(`--([a-z]+(?:-[a-z]+)*)`).FindAllStringSubmatch(page(t), -1)
	require.NotEmpty(t, named)
	for _, flag := range named {
		require.NotNil(t, flags.Lookup(flag[1]), "--%s", flag[1])
	}
}

func TestLinksOfThePageLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(page(t), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, filepath.FromSlash(link[1]))
	}
}

func TestModelsBehaveAsThePageDocuments(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, "| field | value | MozaiksAI | oneturn |") {
		spec, value, want := code(row[0]), code(row[1]), code(row[3])
		models, problems := model.CompileMozaiks([]model.Definition{
			{Name: "M", Fields: []model.Field{{Name: "f", Spec: object(t, spec)}}},
		})
		require.Contains(t, models, "M", "%s: %v", spec, problems)
		in := map[string]any{}
		if value != "absent" {
			in["f"] = decode(t, value)
		}
		out, violations := models["M"].Check(in)
		if want == "error" {
			require.NotEmpty(t, violations, spec)
			continue
		}
		require.Empty(t, violations, spec)
		got, there := out["f"]
		require.Equal(t, want != "absent", there, spec)
		if there {
			require.Equal(t, decode(t, want), got, spec)
		}
	}
}

func TestTextsGiveTheObjectThatThePageDocuments(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, "| text | MozaiksAI | oneturn |") {
		text, want := code(row[0]), code(row[2])
		if strings.HasPrefix(text, `"`) {
			var ok bool
			text, ok = decode(t, text).(string)
			require.True(t, ok)
		}
		got, err := agentjson.Extract(text, agentjson.Options{})
		if want == "error" {
			require.ErrorIs(t, err, events.ErrBadArgs, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, decode(t, want), got.Object)
	}
}

// TestPythonModulesThatThePageNamesCanBeImported runs a tool that imports them all, and looks
// that the page leaves none out.
func TestPythonModulesThatThePageNamesCanBeImported(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	modules, names := []string{}, ""
	for _, row := range table(t, "| module | names |") {
		modules = append(modules, code(row[0]))
		if row[1] != "the same" {
			names = strings.ReplaceAll(row[1], "`", "")
		}
		script.WriteString("from " + code(row[0]) + " import " + names + "\n")
	}
	_, container, ok := strings.Cut(page(t), "\n`context_variables` has ")
	require.True(t, ok)
	container, _, _ = strings.Cut(container, ", as in")
	script.WriteString("def run(context_variables):\n    return all(hasattr(context_variables, n) for n in [")
	for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(container, -1) {
		script.WriteString("'" + name[1] + "', ")
	}
	script.WriteString("])\n")

	root := t.TempDir()
	write(t, root, "W/tools/t.py", script.String())
	pool := python.NewPool(python.Options{Root: root, Size: 1})
	result, err := pool.Tool("W", "t.py", "run").Invoke(t.Context(), &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "c", Turn: "t"}, CallID: "t", Workflow: "W", Agent: "A", Name: "run",
		Args: map[string]any{}, Context: map[string]any{}, Attempt: 1,
	})
	require.NoError(t, err, script.String())
	require.Equal(t, "true", string(result.Value))
	require.NoError(t, pool.Close(t.Context()))

	shims, err := os.ReadFile("../internal/tools/python/host/shims.py")
	require.NoError(t, err)
	var known []string
	for _, m := range regexp.MustCompile(`(?m)^    "([a-z_.]+\.[a-z_.]+)": `).FindAllStringSubmatch(string(shims), -1) {
		known = append(known, m[1])
	}
	slices.Sort(known)
	slices.Sort(modules)
	require.Equal(t, known, slices.Compact(modules)) // a module may have several rows
}
