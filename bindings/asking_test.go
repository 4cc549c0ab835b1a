package bindings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

const asking = "\n-- W/tools/t.py --\nasync def run(): await use_ui_tool('Card', {})\n"

// TestToolsThatWaitForPeopleInMemoryAreNamed expects a finding for each tool whose turn a restart would end.
func TestToolsThatWaitForPeopleInMemoryAreNamed(t *testing.T) {
	t.Parallel()
	cases := []struct{ manifest, code, fix string }{
		{"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, effect: unsafe, ui: {component: C}}]", "ui_tool_unsafe", "write effect: replay"},
		{"-- W/oneturn.yaml --\ndefaults: {effect: unsafe}\ntools: [{name: run, agent: A, file: t.py, ui: {component: C}}]", "ui_tool_unsafe", "step"},
		{"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py}]", "asking_tool_unsafe", "write effect: replay"},
		{"-- W/tools.yaml --\ntools: [{agent: A, file: t.py, function: run, tool_type: Agent_Tool, auto_invoke: true}]", "asking_tool_unsafe", "write effect: replay"},
		{"-- W/tools.yaml --\ntools: [{agent: A, file: t.py, function: run, tool_type: UI_Tool, effect: unsafe}]", "ui_tool_unsafe", "write effect: replay"},
		{"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, ui: {component: C}}]", "", ""},
		{"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, effect: unsafe}]", "", ""}, // its author knows
		{"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, effect: keyed}]", "", ""},
		{"-- W/tools.yaml --\ntools: [{agent: A, file: t.py, function: run, tool_type: UI_Tool, ui: {component: null}}]", "", ""},
	}
	for _, c := range cases {
		set := load(t, unpack(t, c.manifest+asking))
		require.Len(t, set.Bindings(), 1, c.manifest)
		var found bindings.Diagnostic
		for _, d := range set.Diagnostics() {
			if d.Code == "ui_tool_unsafe" || d.Code == "asking_tool_unsafe" {
				require.Empty(t, found, c.manifest)
				found = d
			}
		}
		require.Equal(t, c.code, found.Code, c.manifest)
		require.Contains(t, found.Fix, c.fix)
		if c.code != "" {
			require.Equal(t, diag.SeverityWarning, found.Severity)
			require.Contains(t, found.Message, "never parked")
			require.NotZero(t, found.Line)
		}
	}
}

func TestStepsThatWaitForPeopleInMemoryAreNamed(t *testing.T) {
	t.Parallel()
	for manifest, named := range map[string]bool{
		"tools: [{name: run, file: t.py, auto: false}, {name: p, kind: plan, agent: A, uses: [run]}]":                                 true,
		"tools: [{name: run, file: t.py, auto: false}, {name: p, kind: plan, agent: A}]":                                              true,
		"tools: [{name: run, file: t.py, auto: false}, {name: p, kind: orchestrate, agent: A}]":                                       true,
		"tools: [{name: run, file: t.py, auto: false, effect: replay}, {name: p, kind: plan, agent: A}]":                              false,
		"tools: [{name: run, file: t.py, auto: false}, {name: x, kind: go, auto: false}, {name: p, kind: plan, uses: [x], agent: A}]": false,
		"tools: [{name: run, file: t.py, auto: false}, {name: x, kind: go, agent: A}]":                                                false, // no program calls it
	} {
		set := load(t, unpack(t, "-- W/oneturn.yaml --\n"+manifest+asking))
		require.Equal(t, named, strings.Contains(strings.Join(lines(set, diag.SeverityWarning), "\n"), "asking_tool_unsafe"), manifest)
	}
}

func TestAGoToolThatWaitsInMemoryIsNamed(t *testing.T) {
	t.Parallel()
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "W", Agent: "A", Tool: "ask", Component: "C", Effect: bindings.EffectUnsafe},
	}})
	require.NoError(t, err)
	found := set.Diagnostics()
	require.Len(t, found, 2) // the other: no model
	require.Contains(t, found[0].Code+found[1].Code, "ui_tool_unsafe")
}

func TestSecretAnswersAreReadInEveryGeneration(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]struct {
		secret bool
		codes  []string
	}{
		"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, ui: {component: C, secret: true}}]":                               {true, nil},
		"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, ui: {component: C, secret: false}}]":                              {false, nil},
		"-- W/oneturn.yaml --\ntools: [{name: run, agent: A, file: t.py, ui: {component: C, secret: often}}]":                              {true, []string{"bad_secret"}},
		"-- W/tools.yaml --\ntools: [{agent: A, file: t.py, function: run, tool_type: UI_Tool, ui: {component: C, secret: true}}]":         {true, nil},
		"-- W/tools.json --\n{\"tools\":[{\"agent\":\"A\",\"file\":\"t.py\",\"function\":\"run\",\"tool_type\":\"UI_Tool\",\"ui\":null}]}": {false, nil},
	} {
		set := load(t, unpack(t, manifest+asking))
		require.Len(t, set.Bindings(), 1, manifest)
		require.Equal(t, want.secret, set.Bindings()[0].Secret, manifest)
		var codes []string
		for _, d := range set.Diagnostics() {
			if d.Severity == diag.SeverityError {
				codes = append(codes, d.Code)
			}
		}
		require.Equal(t, want.codes, codes)
	}
}
