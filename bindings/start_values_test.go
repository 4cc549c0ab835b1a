package bindings_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// loadWith loads a folder with an environment that manifests may read in part.
func loadWith(t *testing.T, root string, from bindings.VariableSources, env map[string]string) *bindings.Set {
	t.Helper()
	from.Lookup = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Variables: from})
	require.NoError(t, err)
	return set
}

func TestStartValueFollowsTheSource(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MODE": "live", "FLAG": "on", "N": "12x", "EMPTY": "", "ONETURN_KEY": "secret", "APP_A": "a"}
	for definition, want := range map[string]any{
		`{type: boolean, source: {type: state, default: "yes"}}`:                                   true,
		`{type: boolean, source: {type: state, default: 0}}`:                                       false,
		`{type: boolean, source: {type: state, default: perhaps}}`:                                 nil,
		`{type: int, source: {type: state, default: " 7 "}}`:                                       json.Number("7"),
		`{type: integer, default: 5.0}`:                                                            json.Number("5"),
		`{type: integer, default: [5]}`:                                                            nil,
		`{type: string, default: "5"}`:                                                             "5",
		`{type: boolean, source: {type: derived}}`:                                                 false,
		`{source: {type: derived, default: null}}`:                                                 nil,
		`{source: {type: static, value: {a: 1}}}`:                                                  map[string]any{"a": json.Number("1")},
		`{source: {type: computed, default: 3}}`:                                                   nil,
		`{source: {type: runtime}}`:                                                                nil,
		`{source: {type: data_reference, default: []}}`:                                            []any{},
		`{source: {type: config, env_var: MODE}}`:                                                  "live",
		`{source: {type: config, env_var: APP_A}}`:                                                 "a",
		`{type: boolean, source: {type: environment, env_var: FLAG}}`:                              true,
		`{type: integer, source: {type: config, env_var: N, default: 3}}`:                          nil,
		`{type: integer, source: {type: config, env_var: EMPTY, default: 3}}`:                      json.Number("3"),
		`{source: {type: config, env_var: EMPTY, default: d}}`:                                     "",
		`{source: {type: config, env_var: UNSET, default: d, required: true}}`:                     "d",
		`{source: {type: config, env_var: HOME, default: d}}`:                                      "d",
		`{source: {type: config, env_var: ONETURN_KEY, default: d}}`:                               "d",
		`{source: {type: config, default: x}}`:                                                     "x",
		`{triggers: [{agent: A, equals: GO}]}`:                                                     nil,
		`{default: draft, triggers: [{agent: A, equals: GO}], source: {type: state, default: on}}`: "on",
	} {
		set := loadWith(t, unpack(t, "-- W/agents.yaml --\nagents: {}\n-- W/context_variables.yaml --\ndefinitions: {v: "+definition+"}\n"),
			bindings.VariableSources{Env: []string{"MODE", "FLAG", "N", "EMPTY", "UNSET", "APP_*", "ONETURN_*"}}, env)
		start := set.StartValues("W", &bindings.Chat{})
		require.Contains(t, start, "v", definition)
		require.Equal(t, want, start["v"], definition)
		require.Equal(t, want, set.Variables("W")[0].Start, definition)
	}
}

func TestRuntimeVariablesHaveWhatTheChatKnows(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
context:
  user_id: {source: runtime}
  name: {source: {type: runtime, default: Anna}}
  chat_id: {source: {type: state, default: x}}
-- Other/oneturn.yaml --
agents: {}
`))
	chat := bindings.Chat{App: "a1", ID: "c1", Workflow: "W", User: "u1", Given: map[string]any{"name": "Ada", "chat_id": "c2"}}
	require.Equal(t, map[string]any{"user_id": "u1", "name": "Ada", "chat_id": "x"}, set.StartValues("w", &chat))
	require.Equal(t, map[string]any{"user_id": nil, "name": "Anna", "chat_id": "x"}, set.StartValues("W", &bindings.Chat{}))
	require.Equal(t, map[string]any{"app_id": "a1", "chat_id": "c1", "workflow_name": "W", "user_id": "u1"}, chat.Values())
	require.Nil(t, set.StartValues("Other", &chat))
	require.Nil(t, set.StartValues("Unknown", &chat))
	require.Nil(t, set.Rules("Other"))
	require.Zero(t, set.Rules("Other").Text("A", "x"))
	require.Empty(t, set.Rules("Other").Answer(bindings.Answer{Response: map[string]any{}}))
}

func TestBooleanWithoutDefaultInAConditionIsAWarning(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/agents.yaml --
agents: {}
-- W/handoffs.yaml --
handoff_rules: [{source_agent: A, target_agent: B, handoff_type: condition, condition: "${a} == False or ${ok}"}]
-- W/context_variables.yaml --
definitions:
  a: {type: boolean, source: {type: state, triggers: [{type: agent_text, agent: A, match: {equals: a}}]}}
  b: {type: boolean, source: {type: state}}
  ok: {type: boolean, source: {type: state, default: null, triggers: [{type: agent_text, agent: A, match: {equals: ok}}]}}
`))
	require.Equal(t, []string{
		"W/context_variables.yaml:2: warning: boolean context variable a has no default, so it starts as null, and a condition compares it: ${a} == False does not hold [no_default]: write default: false",
	}, lines(set, diag.SeverityWarning))
}

func TestToolThatReadsAVariableGetsItsSource(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
tools:
  - {name: find, kind: nats, auto: false, effect: none, nats: {subject: shops.find}, input: {type: object}}
  - {name: store, kind: nats, auto: false, nats: {subject: shops.store}, input: {type: object}}
context:
  shops: {source: {type: data_reference, tool: find, collection: shops, query_template: {app_id: "{{runtime.app_id}}", "n": [5, "{{ var.plan.id }}", "{{var.gone}}", "x {{runtime.app_id}}"]}}}
  stored: {source: {type: data_entity, tool: store}}
  lost: {source: {type: data_reference, tool: fnd, default: 1}}
`))
	require.Equal(t, []string{"shops"}, set.ReadByTools("W"))
	calls := set.VariableCalls("W", map[string]any{"app_id": "a1", "plan": map[string]any{"id": "p1"}})
	require.Len(t, calls, 1)
	require.Equal(t, "shops", calls[0].Variable)
	require.Equal(t, "find", calls[0].Binding.Tool)
	require.Equal(t, map[string]any{
		"collection": "shops", "query_template": map[string]any{"app_id": "a1", "n": []any{json.Number("5"), "p1", nil, "x {{runtime.app_id}}"}},
	}, calls[0].Args)
	require.Equal(t, map[string]any{"shops": nil, "stored": nil, "lost": json.Number("1")}, set.StartValues("W", &bindings.Chat{}))
	text := strings.Join(lines(set, diag.SeverityWarning), "\n")
	require.Contains(t, text, "context variable stored is not read with tool \"store\", whose effect is unsafe [hook_with_effect]")
	require.Contains(t, text, "context variable lost names the unknown tool \"fnd\": it has its default until a tool sets it [unknown_tool]: did you mean \"find\"?")
	require.Nil(t, set.VariableCalls("Unknown", nil))
	require.Nil(t, set.ReadByTools("Unknown"))
}

// inFolder returns the start value of a variable with a file, and the code of the finding about it.
func inFolder(t *testing.T, base string, files, path, format string) (value any, code string) {
	t.Helper()
	manifest := `context: {v: {default: none, source: {type: file, path: "` + path + `"` + format + `}}}`
	require.NoError(t, os.WriteFile(filepath.Join(base, "workflows", "W", "oneturn.yaml"), []byte(manifest), 0o600))
	set := loadWith(t, filepath.Join(base, "workflows"), bindings.VariableSources{Files: files}, nil)
	for _, d := range set.Diagnostics() {
		if strings.HasPrefix(d.Code, "file_") {
			code = d.Code
		}
	}
	return set.StartValues("W", &bindings.Chat{})["v"], code
}

func TestFilesOfVariablesOutsideAndSecretsAreRefused(t *testing.T) {
	t.Parallel()
	outside, base := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(base, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(base, name), []byte(text), 0o600))
	}
	link := func(target, name string) { require.NoError(t, os.Symlink(target, filepath.Join(base, name))) }
	require.NoError(t, os.WriteFile(filepath.Join(outside, "note.txt"), []byte("outside"), 0o600))
	write("workflows/W/own.json", `{"own": true}`)
	write("data/menu.json", "\ufeff"+`{"tea": 2}`)
	write("data/menu.yml", "tea: [1, 2]\n")
	write("data/text.md", "\ufeffHello\n")
	write("data/bad.json", `{"tea": `)
	write("data/bytes.txt", "\xff\xfe")
	write("data/large.txt", strings.Repeat("x", 1<<20+1))
	write("data/fits.txt", strings.Repeat("x", 1<<20))
	write(".env", "KEY=x")
	write("data/prod.env", "KEY=x")
	write("data/server.pem", "x")
	write("data/my-Secrets.yaml", "x")
	write(".git/config", "x")
	write("store/secret-keys", "x")
	write("secrets/menu.json", "{}")
	link(filepath.Join(outside, "note.txt"), "data/out.txt")
	link("../.env", "data/env.txt")
	link("menu.json", "data/again.json")
	link(outside, "data/away")
	write("..2026_01_01/config.json", `1`)
	link("..2026_01_01", "..data")
	link("..data/config.json", "config.json")
	for path, want := range map[string][2]any{
		"data/menu.json":                     {map[string]any{"tea": json.Number("2")}, ""},
		"data/../data/menu.yml":              {map[string]any{"tea": []any{json.Number("1"), json.Number("2")}}, ""},
		"data/again.json":                    {map[string]any{"tea": json.Number("2")}, ""},
		"config.json":                        {json.Number("1"), ""},
		"data/text.md":                       {"Hello\n", ""},
		"data/fits.txt":                      {strings.Repeat("x", 1<<20), ""},
		"own.json":                           {map[string]any{"own": true}, ""},
		"workflows/W/own.json":               {map[string]any{"own": true}, ""},
		filepath.Join(base, "data/text.md"):  {"Hello\n", ""},
		"data/bad.json":                      {nil, "file_unreadable"},
		"data/bytes.txt":                     {nil, "file_unreadable"},
		"data/none.json":                     {"none", "file_missing"},
		"":                                   {"none", "file_missing"},
		"data/large.txt":                     {"none", "file_too_large"},
		"data":                               {"none", "file_refused"},
		"../note.txt":                        {"none", "file_outside"},
		"data/../../note.txt":                {"none", "file_outside"},
		"data/out.txt":                       {"none", "file_outside"},
		"data/away/note.txt":                 {"none", "file_outside"},
		filepath.Join(outside, "note.txt"):   {"none", "file_outside"},
		".env":                               {"none", "file_refused"},
		"data/env.txt":                       {"none", "file_refused"},
		"data/prod.env":                      {"none", "file_refused"},
		"data/server.pem":                    {"none", "file_refused"},
		"data/my-Secrets.yaml":               {"none", "file_refused"},
		".git/config":                        {"none", "file_refused"},
		"store/secret-keys":                  {"none", "file_refused"},
		"secrets/menu.json":                  {"none", "file_refused"},
		"workflows/../store/../.git/config":  {"none", "file_refused"},
		filepath.Join(base, "data/prod.env"): {"none", "file_refused"},
	} {
		value, code := inFolder(t, base, "", path, "")
		require.Equal(t, want[1], code, path)
		require.Equal(t, want[0], value, path)
	}
	value, code := inFolder(t, base, "", "data/menu.json", ", format: text")
	require.Empty(t, code)
	require.Equal(t, `{"tea": 2}`, value)
	_, code = inFolder(t, base, "", "data/menu.json", ", format: xml")
	require.Equal(t, "file_unreadable", code)
	value, code = inFolder(t, base, filepath.Join(base, "data"), "menu.json", "")
	require.Empty(t, code)
	require.Equal(t, map[string]any{"tea": json.Number("2")}, value)
	_, code = inFolder(t, base, filepath.Join(base, "data"), "data/menu.json", "")
	require.Equal(t, "file_missing", code)
}

func TestChangedFileOfAVariableIsAnotherVersionOfTheWorkflow(t *testing.T) {
	t.Parallel()
	root := unpack(t, "-- W/oneturn.yaml --\ncontext: {v: {source: {type: file, path: W/v.json}}}\n-- W/v.json --\n1\n")
	opts := bindings.Options{Root: root, Variables: bindings.VariableSources{Files: root}}
	set, err := bindings.Load(t.Context(), opts)
	require.NoError(t, err)
	again, err := bindings.Load(t.Context(), opts)
	require.NoError(t, err)
	require.True(t, set.Equal(again))
	require.NoError(t, os.WriteFile(filepath.Join(root, "W", "v.json"), []byte("2"), 0o600))
	changed, err := bindings.Load(t.Context(), opts)
	require.NoError(t, err)
	require.False(t, set.Equal(changed))
	require.Equal(t, json.Number("2"), changed.StartValues("W", &bindings.Chat{})["v"])
}
