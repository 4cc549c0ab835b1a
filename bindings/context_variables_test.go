package bindings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

func next(agent string, hidden bool) bindings.Trigger {
	return bindings.Trigger{
		Type: bindings.TriggerAgentText, Agent: agent, Match: bindings.MatchEquals, Patterns: []string{"NEXT"}, UIHidden: hidden, Value: true,
	}
}

func TestEveryGenerationOfContextVariablesIsRead(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, text string
		want             bindings.Variable
	}{
		{
			"variables with database", "context_variables.json",
			`{"context_variables":{"variables":[{"name":"v","database":{"database_name":"db","collection":"c"}}]}}`,
			bindings.Variable{Name: "v", Source: bindings.Source{Type: bindings.SourceDataReference, Params: map[string]any{"database_name": "db", "collection": "c"}}},
		},
		{
			"variables from a trigger", "context_variables.json",
			`{"variables":[{"name":"v","from":"trigger.Interview.text","match":"NEXT","ui_hidden":true}]}`,
			bindings.Variable{Name: "v", Start: false, Source: bindings.Source{Type: bindings.SourceDerived}, Triggers: []bindings.Trigger{next("Interview", true)}},
		},
		{
			"a list for each source", "context_variables.json",
			"\xef\xbb\xbf" + `{"context_variables":{"database_variables":[],"environment_variables":[{"name":"v","type":"boolean","env_var":"DEBUG","default":false}]}}`,
			bindings.Variable{Name: "v", Type: "boolean", Default: false, Start: false, Source: bindings.Source{Type: bindings.SourceConfig, Params: map[string]any{"env_var": "DEBUG"}}},
		},
		{
			"definitions with environment", "context_variables.yaml",
			"context_variables: {definitions: {v: {type: string, source: {type: environment, env_var: X}}}}",
			bindings.Variable{Name: "v", Type: "string", Source: bindings.Source{Type: bindings.SourceConfig, Params: map[string]any{"env_var": "X"}}},
		},
		{
			"definitions with static", "context_variables.yaml",
			"definitions: {v: {source: {type: static, value: 7}}}",
			bindings.Variable{Name: "v", Default: json.Number("7"), Start: json.Number("7"), Source: bindings.Source{Type: bindings.SourceStatic}},
		},
		{
			"definitions with derived", "context_variables.yaml",
			"definitions: {v: {source: {type: derived, triggers: [{type: agent_text, agent: I, equals: NEXT}]}}}",
			bindings.Variable{Name: "v", Start: false, Source: bindings.Source{Type: bindings.SourceDerived}, Triggers: []bindings.Trigger{next("I", false)}},
		},
		{
			"list with transitions", "context_variables.yaml",
			"definitions: [{name: v, source: {type: state, default: draft, transitions: [{from: draft, to: done, trigger: {type: agent_text, agent: I, match: {equals: NEXT}}}]}}]",
			bindings.Variable{
				Name: "v", Default: "draft", Start: "draft", Source: bindings.Source{Type: bindings.SourceState},
				Triggers: []bindings.Trigger{{Type: bindings.TriggerAgentText, Agent: "I", Match: bindings.MatchEquals, Patterns: []string{"NEXT"}, From: "draft", Value: "done"}},
			},
		},
		{
			"state with triggers, and agents", "context_variables.yaml",
			"definitions: {v: {type: boolean, description: d, source: {type: state, default: false, triggers: [{type: ui_response, tool: Plan, response_key: data.choice}]}}}\nagents: {Writer: {variables: [v]}}",
			bindings.Variable{
				Name: "v", Type: "boolean", Description: "d", Default: false, Start: false, Source: bindings.Source{Type: bindings.SourceState}, Agents: []string{"Writer"},
				Triggers: []bindings.Trigger{{Type: bindings.TriggerUIResponse, Tool: "Plan", ResponseKey: "data.choice"}},
			},
		},
		{
			"runtime source", "context_variables.yaml",
			"context_variables: {definitions: {v: {type: string, source: {type: runtime}}}}",
			bindings.Variable{Name: "v", Type: "string", Source: bindings.Source{Type: bindings.SourceRuntime}},
		},
		{
			"flat map", "context_variables.yaml", "context_variables: {v: {type: integer, default: 3}}",
			bindings.Variable{Name: "v", Type: "integer", Default: json.Number("3"), Start: json.Number("3"), Source: bindings.Source{Type: bindings.SourceState}},
		},
		{
			"plain list", "context_variables.yaml", "context_variables: [{name: v, type: string, default: a}]",
			bindings.Variable{Name: "v", Type: "string", Default: "a", Start: "a", Source: bindings.Source{Type: bindings.SourceState}},
		},
		{
			"derived_variables", "context_variables.json",
			`{"derived_variables":[{"name":"v","trigger_type":"agent_text_equals","source_agent":"InterviewAgent","trigger_value":"NEXT","ui_hidden":true}]}`,
			bindings.Variable{Name: "v", Start: false, Source: bindings.Source{Type: bindings.SourceDerived}, Triggers: []bindings.Trigger{next("InterviewAgent", true)}},
		},
		{
			"our own", "oneturn.yaml", "context: {v: {type: string, agents: A, source: {type: config, env_var: X}}}",
			bindings.Variable{Name: "v", Type: "string", Agents: []string{"A"}, Source: bindings.Source{Type: bindings.SourceConfig, Params: map[string]any{"env_var": "X"}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// A broken neighbour in a folder of another shape shows the isolation.
			root := unpack(t, "-- W/agents.yaml --\nagents: {}\n-- W/"+tt.file+" --\n"+tt.text)
			set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Variables: bindings.VariableSources{
				Env: []string{"DEBUG", "X"}, Lookup: func(string) (string, bool) { return "", false },
			}})
			require.NoError(t, err)
			require.Empty(t, lines(set, diag.SeverityError, diag.SeverityWarning))
			require.Len(t, set.Variables("W"), 1)
			require.EqualExportedValues(t, tt.want, set.Variables("W")[0])
		})
	}
}

func TestInvalidVariablesAndTriggersAreLeftOutAlone(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/agents.yaml --
agents: {}
-- W/context_variables.yaml --
definitions:
  bad_source: {source: {type: telepathy}}
  bad_shape: 5
  misspelt: {source: {type: stat}}
  good:
    source:
      type: state
      triggers:
      - {type: agent_text, agent: A, match: {regex: "(unclosed"}}
      - {type: smoke_signal}
      - {type: ui_response}
      - {type: agent_text, agent: A}
      - {type: agent_text, agent: A, match: {equals: [NEXT, GO]}}
agents: {W: {variables: [good, unknown]}}
`))
	require.Len(t, set.Variables("W"), 1)
	v := set.Variables("W")[0]
	require.Equal(t, "good", v.Name)
	require.Len(t, v.Triggers, 1)
	require.Equal(t, []string{"NEXT", "GO"}, v.Triggers[0].Patterns)
	warnings := lines(set, diag.SeverityWarning)
	require.Len(t, warnings, 8)
	require.Contains(t, strings.Join(warnings, "\n"), `W/context_variables.yaml:4: warning: context variable misspelt has the unknown source type "stat"; it is ignored [unknown_source]: did you mean "state"?`)
}
