package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/program"
)

const manifest = `
agents:
  Assistant:
  Lead:
models:
  Note: {type: object, required: [text], properties: {text: {type: string}}}
tools:
- {name: run_plan, kind: plan, agent: Assistant, uses: [search, save, note, remote, "agent:critic", inner]}
- {name: cp__agent_orchestrate, kind: orchestrate, agent: Lead, uses: [critic, search, inner], planner: planner, respond: critic}
- {name: inner, kind: plan, auto: false, uses: [deep, inner], program: {depth: 2}}
- {name: off, kind: plan, auto: false, enabled: false}
- {name: search, kind: go, auto: false, effect: none, input: {type: object, required: [city], properties: {city: {type: string}, days: {type: integer}}}, output: {type: object, properties: {hotels: {type: array, items: {type: string}}}}}
- {name: save, kind: go, auto: false, effect: keyed, input: {type: object, properties: {hotel: {type: string}}}}
- {name: note, kind: go, auto: false, model: Note}
- {name: deep, kind: go, auto: false, effect: idempotent}
- {name: remote, auto: false, nats: {service: shop, endpoint: remote, trust_metadata: true}}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
- {name: review, id: critic, kind: agent, auto: false, nats: {subject: agents.critic}}
`

func load(tb testing.TB, text string) *bindings.Set {
	tb.Helper()
	root := tb.TempDir()
	require.NoError(tb, os.MkdirAll(filepath.Join(root, "W"), 0o750))
	require.NoError(tb, os.WriteFile(filepath.Join(root, "W", "oneturn.yaml"), []byte(text), 0o600))
	set, err := bindings.Load(tb.Context(), bindings.Options{Root: root})
	require.NoError(tb, err)
	require.Zero(tb, set.Errors(), "%v", set.Diagnostics())
	return set
}

// compiler returns the compiler of a tool of the manifest in a turn of its first agent.
func compiler(tb testing.TB, tool string, describe program.Describe) *program.Compiler {
	tb.Helper()
	set := load(tb, manifest)
	b := set.Bound("W", "", tool)
	require.NotNil(tb, b)
	return program.NewCompiler(set, b, b.Agent, 1, describe)
}

func decoded(tb testing.TB, text string) any {
	tb.Helper()
	v, err := events.Decode([]byte(text))
	require.NoError(tb, err)
	return v
}

// plan is a plan of calls, each `tool` or `tool {arguments}`.
func plan(calls ...string) string {
	for i, call := range calls {
		tool, arguments, _ := strings.Cut(call, " ")
		calls[i] = `{"tool_name":"` + tool + `"`
		if arguments != "" {
			calls[i] += `,"arguments":` + arguments
		}
		calls[i] += "}"
	}
	return `{"type":"tool_calls","calls":[` + strings.Join(calls, ",") + `]}`
}
