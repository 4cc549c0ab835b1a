package bindings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// invalidTools are refused by the schema for editors and reported by the loader. Each is the rest
// of a tool that has a name, and an agent where it needs one.
func invalidTools() map[string]string {
	return map[string]string{
		"two blocks":          `nats: {subject: a}, http: {url: "https://a.example"}`,
		"kind without block":  "kind: mcp",
		"block as a text":     "nats: a.b",
		"nothing in nats":     "nats: {}",
		"wildcard":            `nats: {subject: "a.>"}`,
		"pattern of all":      `nats: {service: a, subjects: ["*.b"]}`,
		"pattern in a token":  `nats: {service: a, subjects: ["b.c*"]}`,
		"pattern continues":   `nats: {service: a, subjects: ["b.>.c"]}`,
		"system pattern":      `nats: {service: a, subjects: "$JS.>"}`,
		"no patterns":         `nats: {service: a, subjects: []}`,
		"patterns, subject":   `nats: {subject: a.b, subjects: [b.c]}`,
		"system subject":      `nats: {subject: "$SYS.A"}`,
		"service name":        `nats: {service: "a b"}`,
		"mcp without server":  "mcp: {tool: a}",
		"mcp digest":          "mcp: {server: s, digest: abc}",
		"no url":              "http: {method: POST}",
		"url scheme":          `http: {url: "ftp://a.example"}`,
		"url credentials":     `http: {url: "https://u:p@a.example"}`,
		"url template":        `http: {url: "https://a.example/{x}"}`,
		"url without host":    `http: {url: "https:///x"}`,
		"method":              `http: {url: "https://a.example", method: GET}`,
		"header as a list":    `http: {url: "https://a.example", headers: {X-A: [b]}}`,
		"header without file": `http: {url: "https://a.example", headers: {X-A: {prefix: b}}}`,
		"unknown key of http": `http: {url: "https://a.example", retries: 3}`,
		"allow_private":       `http: {url: "https://a.example", allow_private: 10}`,
		"no model":            `completion: {url: "https://a.example"}`,
		"temperature":         `completion: {url: "https://a.example", model: m, temperature: 3}`,
		"max_tokens":          `completion: {url: "https://a.example", model: m, max_tokens: 0}`,
		"input":               "kind: go, input: anything",
		"output":              "kind: go, output: [a]",
		"cache":               "kind: go, effect: none, cache: always",
		"cache scope":         "kind: go, effect: none, cache: {ttl: 5m, scope: all}",
		"cache without ttl":   "kind: go, effect: none, cache: {scope: user}",
		"rate":                "kind: go, limits: {rate: fast}",
		"burst alone":         "kind: go, limits: {burst: 3}",
		"output size":         "kind: go, limits: {output: big}",
		"tenant":              "kind: go, limits: {tenant: {output: 1KiB}}",
		"guards as a map":     "kind: go, guards: {on: input}",
		"guard without check": "kind: go, guards: [{on: input}]",
		"guard with two":      "kind: go, guards: [{on: input, secrets: refuse, max_bytes: 3}]",
		"guard on nothing":    "kind: go, guards: [{secrets: refuse}]",
		"guard on both":       "kind: go, guards: [{on: both, secrets: refuse}]",
	}
}

func validTools() map[string]string {
	return map[string]string{
		"nats":       `nats: {service: orders, endpoint: place, trust_metadata: true}, output: {type: object}`,
		"patterns":   `nats: {service: orders, subjects: [shop.place, "shop.*.v1", "stock.>"]}`,
		"pattern":    `nats: {service: orders, subjects: shop}`,
		"no network": `http: {url: "https://a.example", allow_private: []}`,
		"mcp":        `mcp: {server: s}, input: {type: object, properties: {a: {type: string}}}`,
		"http":       `http: {url: "http://a.example:8080/x?y=1", method: patch, allow_http: true, allow_private: 10.0.0.0/8, headers: {X-A: 1, X-B: {file: /run/b, prefix: "Bearer "}}}`,
		"completion": `completion: {url: "https://a.example", model: m}, cache: 5m, id: x`,
		"agent":      `kind: agent, nats: {subject: a.b}`,
		"rules": `kind: go, effect: none, cache: {ttl: 60, scope: global}, limits: {concurrency: 2, rate: 5/10s, burst: 9, output: 1.5MiB, tenant: {rate: 1/s}},
    guards: [{on: input, when: "len(args) > 3", message: Too many.}, {on: output, schema: {type: string}}, {on: output, secrets: refuse}, {on: input, max_bytes: 64}]`,
	}
}

func TestSchemasForEditorsRefuseWhatTheLoaderReports(t *testing.T) {
	t.Parallel()
	own, common := editorSchema(t), editorSchemaOfShared(t)
	for name, rest := range invalidTools() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := "servers: {s: {command: run}}\ntools:\n- {name: t, agent: A, " + rest + "}\n"
			require.Error(t, own.Validate(yamlValue(t, manifest)))
			set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+manifest))
			require.NotEmpty(t, lines(set, diag.SeverityError))

			manifest = "servers: {s: {command: run}}\ntools:\n- {name: t, " + rest + "}\n"
			require.Error(t, common.Validate(yamlValue(t, manifest)))
			set = load(t, unpack(t, "-- tools.oneturn.yaml --\n"+manifest+"-- W/oneturn.yaml --\nagents: {A: }\ntools: [{use: t, agent: A}]"))
			require.NotEmpty(t, lines(set, diag.SeverityError))
		})
	}
}

func TestSchemasForEditorsAcceptEveryKind(t *testing.T) {
	t.Parallel()
	own, common := editorSchema(t), editorSchemaOfShared(t)
	for name, rest := range validTools() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := "agents: {A: {tools: [t]}}\nservers: {s: {command: run}}\ntools:\n- {name: t, agent: A, " + rest + "}\n"
			require.NoError(t, own.Validate(yamlValue(t, manifest)))
			set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+manifest))
			require.Empty(t, lines(set, diag.SeverityError))
			require.Len(t, set.Bindings(), 1)

			shared := "servers: {s: {command: run}}\ntools:\n- {name: t, " + rest + "}\n"
			require.NoError(t, common.Validate(yamlValue(t, shared)))
			set = load(t, unpack(t, "-- tools.oneturn.yaml --\n"+shared+"-- W/oneturn.yaml --\nagents: {A: {tools: [t]}}\ntools: [{use: t, agent: A}]"))
			require.Empty(t, lines(set, diag.SeverityError))
			require.Len(t, set.Bindings(), 1)
		})
	}
}

func editorSchemaOfShared(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := bindings.SharedSchema()
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("shared.json", strings.NewReader(string(text))))
	s, err := c.Compile("shared.json")
	require.NoError(t, err)
	return s
}
