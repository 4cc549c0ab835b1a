package bindings_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

const fullManifest = `
workflow: W
agents:
  Greeter: {model: Greeting, description: greets}
  Planner:
models:
  Greeting:
    type: object
    required: [name]
    properties:
      name: {type: string}
      userId: {type: string}
tools:
  - name: greet
    agent: Greeter
    file: greet.py
    ui: {component: Card, mode: inline, secret: true}
  - name: charge
    kind: go
    agents: [Planner]
    schema: {type: object, properties: {amount: {type: integer}}}
    effect: keyed
    timeout: 1m30s
    max_attempts: 3
    description: charges
  - name: manual
    agent: Planner
    kind: python
    file: greet.py
    function: greet
    auto: false
defaults: {timeout: 2.5, max_attempts: 2}
context:
  topic: {type: string, description: what it is about, default: none, source: {type: state}, agents: [Greeter]}
handoffs:
  - {from: [Greeter, user], to: Planner, condition: "${topic} != None", condition_type: expression, scope: pre, description: skips}
  - {from: Greeter, to: Planner, trigger: [NEXT, DONE], conditions: ["${topic}"]}
  - {from: Planner, to: user}
on_key_reuse: run
compat: {silent: true, events: true}
description: greets people
`

func TestOwnManifestBindsEverythingItDeclares(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+fullManifest+"-- W/greet.py --\ndef greet(name, user_id=None, chat_id=None, *, context_variables): pass\n"))
	require.Equal(t, []string{"W/oneturn.yaml:14: warning: field userId of model Greeting: the agent's output, not the turn, decides what tool greet " +
		"gets for userId [identity_from_model]: remove it from the schema if the tool must have the turn's own value: a parameter of that name is filled by the turn"},
		lines(set, diag.SeverityWarning))
	require.Len(t, set.Bindings(), 2)

	require.True(t, set.CompatEvents("W"))
	require.False(t, set.CompatEvents("another"))
	require.Equal(t, "greets people", set.Description("w"))
	require.Equal(t, []string{"Greeter", "Planner"}, set.Agents("W"))
	require.Empty(t, set.Description("another"))
	require.Empty(t, set.Agents("another"))
	greet, err := set.Resolve("W", "Greeter", "Greeting")
	require.NoError(t, err)
	require.EqualExportedValues(t, bindings.Binding{
		Workflow: "W", Dir: "W", Agent: "Greeter", ModelName: "Greeting", Tool: "greet",
		Kind: bindings.KindPython, File: "W/greet.py", Function: "greet",
		Effect: bindings.EffectReplay, EffectWhy: "a UI tool without effect", MaxAttempts: 2, Timeout: 2500 * time.Millisecond,
		Component: "Card", Display: "inline", Secret: true, Model: greet.Model, AcceptsContext: true,
		Digest: set.WorkflowDigest("W"), CompatSilent: true, CompatEvents: true, RunOnKeyReuse: true,
	}, *greet)
	args, _ := greet.Args(map[string]any{"name": "Al", "userId": "u"}, goldenTurn("Greeter"))
	require.Equal(t, map[string]any{"name": "Al", "user_id": "u", "chat_id": "c1"}, args)

	charge, err := set.Resolve("W", "Planner", "charge")
	require.NoError(t, err)
	require.Equal(t, bindings.KindGo, charge.Kind)
	require.Equal(t, bindings.EffectKeyed, charge.Effect)
	require.Equal(t, "effect of the tool (W/oneturn.yaml:22)", charge.EffectWhy)
	require.Equal(t, 90*time.Second, charge.Timeout)
	require.Equal(t, 3, charge.MaxAttempts)
	require.Equal(t, []string{"amount"}, charge.Model.Fields())
}

func TestOwnManifestAddsToMozaiksManifests(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/agents.yaml --
agents: {A: {auto_tool_mode: true}}
-- W/tools.yaml --
tools: [{agent: A, file: t.py, function: old, tool_type: UI_Tool}]
-- W/structured_outputs.yaml --
models: {Out: {type: model, fields: {name: {type: str}}}}
registry: {A: Out}
-- W/oneturn.yaml --
tools: [{name: new, agent: A, file: t.py}]
-- W/t.py --
def old(name): pass
def new(name): pass
`))
	b, err := set.Resolve("W", "A", "Out")
	require.NoError(t, err)
	require.Equal(t, "new", b.Tool)
	require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "old (W/tools.yaml:1) is never called, new is")
}

// invalidManifests are refused by the schema for editors and reported by the loader.
func invalidManifests() map[string]string {
	return map[string]string{
		"unknown key":             "agnets: {}",
		"unknown key of a tool":   "tools: [{name: t, agent: A, kind: go, efect: none}]",
		"unknown key of an agent": "agents: {A: {mdel: M}}",
		"unknown key of ui":       "tools: [{name: t, agent: A, kind: go, ui: {comp: C}}]",
		"unknown key of defaults": "defaults: {retries: 3}",
		"unknown key of compat":   "compat: {quiet: true}",
		"unknown key of context":  "context: {v: {typ: string}}",
		"unknown key of handoffs": "handoffs: {rule: []}",
		"unknown key of a rule":   "handoffs: [{from: A, to: B, conditon: x}]",
		"rule without target":     "handoffs: [{from: A}]",
		"rule without source":     "handoffs: {rules: [{to: A}]}",
		"rules as a map":          "handoffs: {rules: {A: B}}",
		"condition as a number":   "handoffs: [{from: A, to: B, condition: 5}]",
		"trigger as a map":        "handoffs: [{from: A, to: B, trigger: {equals: x}}]",
		"decider as a list":       "handoffs: {decider: [x]}",
		"bad effect":              "tools: [{name: t, agent: A, kind: go, effect: sometimes}]",
		"bad timeout":             "tools: [{name: t, agent: A, kind: go, timeout: soon}]",
		"negative timeout":        "tools: [{name: t, agent: A, kind: go, timeout: -1}]",
		"bad max_attempts":        "tools: [{name: t, agent: A, kind: go, max_attempts: 0}]",
		"max_attempts as text":    `tools: [{name: t, agent: A, kind: go, max_attempts: "3"}]`,
		"bad kind":                "tools: [{name: t, agent: A, kind: rust}]",
		"tool without agent":      "tools: [{name: t, kind: go, auto: true}]",
		"tool without name":       "tools: [{agent: A, kind: go}]",
		"python without file":     "tools: [{name: t, agent: A, kind: python}]",
		"model and schema":        "tools: [{name: t, agent: A, kind: go, model: M, schema: {type: object}}]\nmodels: {M: {type: object}}",
		"tools as a map":          "tools: {t: {agent: A}}",
		"tool as a text":          "tools: [greet]",
		"agents as a list":        "agents: [A]",
		"models as a list":        "models: [M]",
		"agent as a text":         "agents: {A: M}",
		"bad on_key_reuse":        "on_key_reuse: maybe",
		"bad silent":              "compat: {silent: perhaps}",
		"bad events":              "compat: {events: perhaps}",
		"bad auto":                "tools: [{name: t, agent: A, kind: go, auto: perhaps}]",
		"effect of a program":     "tools: [{name: t, agent: A, kind: plan, effect: none}]",
		"file of a program":       "tools: [{name: t, agent: A, kind: orchestrate, file: t.py}]",
		"uses of another kind":    "tools: [{name: t, agent: A, kind: go, uses: [u]}]",
		"no calls":                "tools: [{name: t, agent: A, kind: plan, program: {calls: 0}}]",
		"key of program":          "tools: [{name: t, agent: A, kind: plan, program: {call: 1}}]",
		"bad enabled":             "tools: [{name: t, agent: A, kind: plan, enabled: perhaps}]",
		"plan without agent":      "tools: [{name: t, kind: plan}]",
		"a list":                  "[]",
	}
}

func TestInvalidOwnManifestsAreReportedAndRefusedByTheSchema(t *testing.T) {
	t.Parallel()
	schema := editorSchema(t)
	for name, text := range invalidManifests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, schema.Validate(yamlValue(t, text)), "schema for editors")
			set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+text))
			require.NotEmpty(t, lines(set, diag.SeverityError))
		})
	}
}

func TestSchemaForEditorsAcceptsWhatTheLoaderAccepts(t *testing.T) {
	t.Parallel()
	schema := editorSchema(t)
	for name, text := range map[string]string{
		"full":     fullManifest,
		"programs": programManifest,
		"hello": `
agents:
  Greeter: {model: Greeting}
models:
  Greeting:
    type: object
    required: [name]
    properties:
      name: {type: string}
tools:
  - name: greet
    agent: Greeter
    file: greet.py
`,
		"one schema":     "tools: [{name: greet, agent: Greeter, file: greet.py, schema: {type: object, properties: {name: {type: string}}}}]",
		"function alone": "tools: [{function: greet, agent: Greeter, file: greet.py}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, schema.Validate(yamlValue(t, text)))
			set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+text+"\n-- W/greet.py --\ndef greet(name, user_id=None): pass\n"))
			require.Empty(t, lines(set, diag.SeverityError))
			require.NotEmpty(t, set.Bindings())
		})
	}
}

// A misspelt guard, limit or approval must not leave a tool without one.
func TestToolWithAnUnknownKeyIsNotBoundAndGetsASuggestion(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"{name: t, agent: A, kind: go, efect: none}":                        `tool has no key "efect" [unknown_key]: did you mean "effect"?`,
		"{name: t, agent: A, kind: go, guard: [{on: input, max_bytes: 1}]}": `tool has no key "guard" [unknown_key]: did you mean "guards"?`,
		"{name: t, agent: A, kind: plan, aprove: true}":                     `tool has no key "aprove" [unknown_key]: did you mean "approve"?`,
		"{name: t, agent: A, kind: plan, program: {cals: 2}}":               `program has no key "cals" [unknown_key]: did you mean "calls"?`,
		"{name: t, agent: A, kind: go, limits: {concurency: 1}}":            `limits has no key "concurency" [unknown_key]: did you mean "concurrency"?`,
		"{name: t, agent: A, kind: go, ui: {component: C, secrt: true}}":    `ui has no key "secrt" [unknown_key]: did you mean "secret"?`,
	} {
		t.Run(entry, func(t *testing.T) {
			t.Parallel()
			set := load(t, unpack(t, "-- W/oneturn.yaml --\nagents: {A: {}}\ntools:\n- "+entry+"\n- {name: other, agent: B, kind: go}\n"))
			require.Contains(t, lines(set, diag.SeverityError), "W/oneturn.yaml:3: error: "+want)
			require.Len(t, set.Bindings(), 1)
			require.Equal(t, "other", set.Bindings()[0].Tool)
		})
	}
}

func TestSharedToolWithAnUnknownKeyIsNotBoundWhereItIsUsed(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- tools.oneturn.yaml --
tools:
- {name: pay, nats: {subject: pay}, guard: [{on: input, max_bytes: 1}]}
-- W/oneturn.yaml --
tools:
- {use: pay, agent: A}
`))
	require.Contains(t, lines(set, diag.SeverityError), `tools.oneturn.yaml:2: error: shared tool has no key "guard" [unknown_key]: did you mean "guards"?`)
	require.Empty(t, set.Bindings())
}

func TestCacheWithAnUnknownKeyIsNotUsed(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, "-- W/oneturn.yaml --\ntools:\n- {name: t, agent: A, kind: go, effect: none, cache: {ttl: 5m, scop: user}}\n"))
	require.Len(t, set.Bindings(), 1)
	require.Zero(t, set.Bindings()[0].Cache)
}

func TestModelThatReadsAFileOrTheNetIsRefusedAlone(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
models:
  File: {type: object, properties: {x: {$ref: "file:///etc/passwd"}}}
  Net: {type: object, properties: {x: {$ref: "http://localhost/x.json"}}}
  Good: {type: object, properties: {x: {type: string}}}
tools:
- {name: file, agent: A, kind: go, model: File}
- {name: net, agent: A, kind: go, model: Net}
- {name: good, agent: A, kind: go, model: Good}
`))
	require.Len(t, set.Bindings(), 1)
	require.Equal(t, "good", set.Bindings()[0].Tool)
	errs := lines(set, diag.SeverityError)
	require.Len(t, errs, 2)
	require.Contains(t, errs[0], "W/oneturn.yaml:2: error: model File cannot be used")
	require.Contains(t, errs[1], "W/oneturn.yaml:3: error: model Net cannot be used")
}

func editorSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("oneturn.json", strings.NewReader(string(bindings.ManifestSchema()))))
	s, err := c.Compile("oneturn.json")
	require.NoError(t, err)
	return s
}

// yamlValue reads YAML as a value that jsonschema takes.
func yamlValue(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v))
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var out any
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}
