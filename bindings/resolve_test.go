package bindings_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

const resolveArchive = `
-- Shop/oneturn.yaml --
agents:
  Seller: {model: Offer}
  Buyer: {model: Offer}
  Lonely:
  Busy:
  Miswired: {model: Broken}
models:
  Offer: {type: object, properties: {price: {type: number}}}
  Broken: {type: object, properties: {x: {type: nonsense}}}
  Bid: {type: object, properties: {price: {type: number}}}
  Spare: {type: object, properties: {}}
tools:
  - {name: sell, agent: Seller, kind: go}
  - {name: buy, agent: Buyer, kind: go}
  - {name: alone, agent: Lonely, kind: go}
  - {name: first, agent: Busy, kind: go, model: Bid}
  - {name: second, agent: Busy, kind: go, schema: {type: object, properties: {}}}
  - {name: misbound, agent: Miswired, kind: go}
  - {name: gone, agent: Ghost, file: missing.py}
  - {name: manual, agent: Manual, kind: go, auto: false}
`

func TestResolveFollowsItsOrder(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, resolveArchive))
	tests := []struct{ name, workflow, agent, model, tool string }{
		{"model and agent", "Shop", "Seller", "Offer", "sell"},
		{"the other agent of the model", "Shop", "Buyer", "Offer", "buy"},
		{"model alone: the last entry", "Shop", "Nobody", "Offer", "buy"},
		{"model alone without agent", "Shop", "", "Bid", "first"},
		{"no model: the registered one", "Shop", "Seller", "", "sell"},
		{"UnknownModel: the registered one", "Shop", "Seller", "UnknownModel", "sell"},
		{"agent without model", "Shop", "Lonely", "", "alone"},
		{"agent without model, UnknownModel", "Shop", "Lonely", "UnknownModel", "alone"},
		{"a tool's own schema", "Shop", "Busy", "second", "second"},
		{"workflow in other letter case", "sHOP", "Seller", "Offer", "sell"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := set.Resolve(tt.workflow, tt.agent, tt.model)
			require.NoError(t, err)
			require.Equal(t, tt.tool, b.Tool)
		})
	}
}

func TestResolveNamesTheReasonWhyNothingIsBound(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, resolveArchive))
	tests := []struct {
		name, workflow, agent, model string
		cause                        error
		text                         string
	}{
		{"unknown workflow", "Shp", "Seller", "Offer", bindings.ErrUnknownWorkflow, `did you mean "Shop"?`},
		{"unknown model", "Shop", "Seller", "Ofer", bindings.ErrNoBinding, `did you mean "Offer"?`},
		{"model without tool", "Shop", "Seller", "Spare", bindings.ErrNoBinding, "no tool is bound to it"},
		{"unknown agent", "Shop", "Buyers", "", bindings.ErrNoBinding, `did you mean "Buyer"?`},
		{"several tools", "Shop", "Busy", "", bindings.ErrNoBinding, "has several tools: the event must name the model"},
		{"broken model", "Shop", "Miswired", "Broken", bindings.ErrNoBinding, `model "Broken" cannot be used (Shop/oneturn.yaml:9`},
		{"broken model by agent", "Shop", "Miswired", "", bindings.ErrNoBinding, `model "Broken" cannot be used`},
		{"missing file", "Shop", "Ghost", "", bindings.ErrNoBinding, `tool gone of agent Ghost is not usable: Shop/oneturn.yaml:19: file "missing.py" not found`},
		{"not automatic", "Shop", "Manual", "", bindings.ErrNoBinding, "not called automatically"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := set.Resolve(tt.workflow, tt.agent, tt.model)
			require.Nil(t, b)
			require.ErrorIs(t, err, tt.cause)
			require.ErrorIs(t, err, events.ErrNoBinding)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

func TestWorkflowsThatDifferInCaseOnlyAreFoundExactlyOnly(t *testing.T) {
	t.Parallel()
	declared := []bindings.Declaration{
		{Workflow: "Shop", Agent: "A", Tool: "upper"},
		{Workflow: "shop", Agent: "A", Tool: "lower"},
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: declared})
	require.NoError(t, err)
	b, err := set.Resolve("Shop", "A", "")
	require.NoError(t, err)
	require.Equal(t, "upper", b.Tool)
	_, err = set.Resolve("SHOP", "A", "")
	require.ErrorIs(t, err, bindings.ErrUnknownWorkflow)
	require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "case_clash")
}

func TestResolveDoesNotAllocate(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts for the whole process
	set := load(t, unpack(t, resolveArchive))
	for _, q := range [][3]string{{"Shop", "Seller", "Offer"}, {"SHOP", "Seller", "Offer"}, {"Shop", "", "Offer"}, {"Shop", "Lonely", "UnknownModel"}} {
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := set.Resolve(q[0], q[1], q[2]); err != nil {
				panic(err)
			}
		})
		require.Zero(t, allocs, q)
	}
}

func TestDeclarationsCreateAndExtendWorkflows(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- Hello/oneturn.yaml --
agents:
  Greeter: {model: Greeting}
models:
  Greeting: {type: object, required: [name], properties: {name: {type: string}}}
`)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Declared: []bindings.Declaration{
		{Workflow: "Hello", Agent: "Greeter", Tool: "greet", Effect: bindings.EffectKeyed, MaxAttempts: 3, Timeout: time.Minute},
		{Workflow: "New", Agent: "Adder", Model: "Sum", Tool: "add", Schema: []byte(`{"type":"object","properties":{"a":{"type":"integer"}}}`)},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"Hello", "New"}, set.Workflows())

	b, err := set.Resolve("Hello", "Greeter", "Greeting")
	require.NoError(t, err)
	require.Equal(t, bindings.KindGo, b.Kind)
	require.Equal(t, bindings.EffectKeyed, b.Effect)
	require.Equal(t, 3, b.MaxAttempts)
	require.Equal(t, time.Minute, b.Timeout)
	require.NotNil(t, b.Model)
	require.True(t, b.AcceptsContext)

	b, err = set.Resolve("New", "Adder", "Sum")
	require.NoError(t, err)
	data := map[string]any{"a": "kept as it is"}
	args, mapped := b.Args(data, &events.StructuredOutputReady{})
	require.Equal(t, data, args)
	require.False(t, mapped)
}

func TestIncompleteDeclarationsAreRefused(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]bindings.Declaration{
		`oneturn.NewTool("t"): set ToolOptions.Workflow`:                                                                          {Agent: "A", Tool: "t"},
		`oneturn.NewTool("t"): set ToolOptions.Agent`:                                                                             {Workflow: "W", Tool: "t"},
		`oneturn.NewTool(""): the tool has no name: pass one as the first argument`:                                               {Workflow: "W", Agent: "A"},
		`oneturn.NewTool("t"): invalid ToolOptions.Effect "sometimes": use oneturn.Unsafe, Replay, Keyed, Idempotent or ReadOnly`: {Workflow: "W", Agent: "A", Tool: "t", Effect: "sometimes"},
		`oneturn.NewTool("t"): invalid ToolOptions.MaxAttempts -1: use 0 to 100`:                                                  {Workflow: "W", Agent: "A", Tool: "t", MaxAttempts: -1},
		`oneturn.NewTool("t"): invalid ToolOptions.Timeout -1ns: use 0 to 168h`:                                                   {Workflow: "W", Agent: "A", Tool: "t", Timeout: -1},
	} {
		_, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{d}})
		require.EqualError(t, err, want)
	}
}
