package bindings_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// TestFindingsNameTheFixWithTheKeysOfTheirManifest has a folder for each mistake and all findings of
// the kind.
func TestFindingsNameTheFixWithTheKeysOfTheirManifest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ files, want string }{
		"shadowed in oneturn.yaml": {
			"-- W/oneturn.yaml --\ntools:\n- {name: a, agent: A, kind: go, schema: {type: object}}\n- {name: b, agent: A, kind: go, schema: {type: object}}\n" +
				"- {name: c, agent: A, kind: go, model: b}\n",
			"W/oneturn.yaml:4: warning: agent A has several automatic tools; b (W/oneturn.yaml:3) is never called, c is [tool_shadowed]: set auto: false on the others, or give them other agents",
		},
		"no automatic tool in oneturn.yaml": {
			"-- W/oneturn.yaml --\nagents: {A: {}}\ntools: [{name: a, agent: A, kind: go, auto: false}]\n",
			"W/oneturn.yaml:1: warning: agent A calls no tool: none of its tools is called automatically [auto_agent_without_tool]: set auto: true on one of its tools, or remove the agent",
		},
		"no tool in oneturn.yaml": {
			"-- W/oneturn.yaml --\nagents: {A: {}}\n",
			"W/oneturn.yaml:1: warning: agent A calls no tool: no tool names it [auto_agent_without_tool]: add a tool with agent: A, or remove the agent",
		},
		"swapped letters": {
			"-- W/oneturn.yaml --\nagents: {A: {modle: M}}\n",
			`W/oneturn.yaml:1: error: agent has no key "modle" [unknown_key]: did you mean "model"?`,
		},
		"unknown model": {
			"-- W/oneturn.yaml --\nagents: {A: {model: Tiket}}\nmodels: {Ticket: {type: object}}\n",
			`W/oneturn.yaml:1: error: agent A is registered with the unknown model "Tiket" [unknown_model]: did you mean "Ticket"?`,
		},
		"unknown model without models": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A, B, C], kind: go, model: Ticket}]\n",
			`W/oneturn.yaml:1: error: tool a names the unknown model "Ticket" [unknown_model]: define it under models`,
		},
		"file misspelt": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agent: A, file: tools/tikets.py}]\n-- W/tools/tickets.py --\ndef a(): pass\n",
			`W/oneturn.yaml:1: error: tool a is not bound: file "tools/tikets.py" not found in the workflow's folder or its tools folder [tool_unusable]: did you mean "tickets.py"?`,
		},
		"file missing": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agent: A, file: tickets.py}]\n",
			`W/oneturn.yaml:1: error: tool a is not bound: file "tickets.py" not found in the workflow's folder or its tools folder [tool_unusable]: create tools/tickets.py`,
		},
		"Python that cannot be read": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agent: A, file: t.py}]\n-- W/t.py --\ndef (\n",
			`W/t.py:1: error: tool a (W/oneturn.yaml:1) is not bound: invalid syntax [tool_unusable]: correct the Python code there`,
		},
		"Python that cannot be read, of several tools": {
			"-- W/oneturn.yaml --\ntools:\n- {name: a, agent: A, file: t.py}\n- {name: b, agents: [A, B], file: tools/../t.py}\n- {name: c, auto: false, file: t.py}\n- {name: u, agent: U, file: u.py}\n-- W/t.py --\ndef (\n-- W/u.py --\ndef u(): pass\n",
			"W/oneturn.yaml:5: warning: agent U has no model: tool u gets its output unchecked [agent_without_model]: add model to the agent or to the tool\n" +
				`W/t.py:1: error: tools a, b, c are not bound: invalid syntax [tool_unusable]: correct the Python code there`,
		},
		"a step that takes the turns of its program": {
			"-- W/oneturn.yaml --\nagents: {A: {model: M}}\nmodels: {M: {type: object}}\ntools:\n- {name: run_plan, kind: plan, agent: A}\n- {name: find, agent: A, kind: go}\n",
			"W/oneturn.yaml:5: warning: turns of agent A run tool find and not run_plan (W/oneturn.yaml:4): both are automatic [tool_shadowed]: set auto: false on find, so that only steps of run_plan call it",
		},
		"a program that takes the turns of its step": {
			"-- W/oneturn.yaml --\nagents: {A: {model: M}}\nmodels: {M: {type: object}}\ntools:\n- {name: find, agent: A, kind: go}\n- {name: run_plan, kind: plan, agent: A}\n",
			"W/oneturn.yaml:5: warning: turns of agent A run tool run_plan and not find (W/oneturn.yaml:4): both are automatic [tool_shadowed]: set auto: false on find, so that only steps of run_plan call it",
		},
		"names in a program that has other errors": {
			"-- W/oneturn.yaml --\ntools:\n- {name: run_plan, kind: plan, agent: A, aprove: true, uses: [fnd], planner: plan, respond: wrter}\n- {name: find, auto: false, kind: go}\n- {name: writer, auto: false, kind: go}\n",
			`W/oneturn.yaml:2: error: tool has no key "aprove" [unknown_key]: did you mean "approve"?` + "\n" +
				`W/oneturn.yaml:2: error: tool run_plan cannot be used: uses names the unknown tool "fnd" [unknown_tool]: did you mean "find"?` + "\n" +
				`W/oneturn.yaml:2: error: tool run_plan cannot be used: planner names the unknown tool "plan" [unknown_tool]: define it under tools, or name one that is there: find, writer` + "\n" +
				`W/oneturn.yaml:2: error: tool run_plan cannot be used: respond names the unknown tool "wrter" [unknown_tool]: did you mean "writer"?`,
		},
		"steps that are not usable": {
			"-- W/oneturn.yaml --\nagents: {A: {tools: [find, run_plan]}}\ntools:\n- {name: run_plan, kind: plan, agent: A, uses: [find], planner: w}\n- {name: find, kind: go}\n- {name: writer, id: w, kind: agent, nats: {subject: a.w}}\n",
			`W/oneturn.yaml:4: error: tool "find" has no agent [tool_without_agent]: add agent: the name of the agent that calls it, or auto: false if only programs call it` + "\n" +
				`W/oneturn.yaml:5: error: tool "writer" has no agent [tool_without_agent]: add agent: the name of the agent that calls it, or auto: false if only programs call it`,
		},
		"several YAML documents": {
			"-- W/oneturn.yaml --\nagents: {A: {}}\n---\ntools: []\n",
			"W/oneturn.yaml:2: error: the file cannot be read: more than one YAML document in the file: the second one begins here [unreadable_manifest]: remove ---, or move what follows into the directory of another workflow",
		},
		"required names that properties lack": {
			"-- W/oneturn.yaml --\nagents: {A: {model: M}}\nmodels: {M: {type: object, required: [txt], properties: {text: {}}}}\ntools: [{name: a, agent: A, kind: go}]\n",
			`W/oneturn.yaml:2: warning: model M: ` + "`required`" + ` names "txt", which ` + "`properties`" + ` does not have ("/required") [bad_model]: did you mean "text"? Else add it to ` + "`properties`",
		},
		"YAML that cannot be read": {
			"-- W/oneturn.yaml --\nagents:\n  A: {model: M\ntools: []\n",
			`W/oneturn.yaml:2: error: the file cannot be read: did not find expected ',' or '}' [unreadable_manifest]: look for a missing bracket, comma or quote near this line or below`,
		},
		"YAML that cannot be read on its first line": {
			"-- W/oneturn.yaml --\nagents: a: b\n",
			`W/oneturn.yaml:1: error: the file cannot be read: mapping values are not allowed in this context [unreadable_manifest]: put the value in quotes if it holds ": ", or look for a wrong indentation near this line`,
		},
		"JSON that cannot be read": {
			"-- W/oneturn.json --\n{\"agents\": {},\n \"tools\" []}\n",
			`W/oneturn.json:2: error: the file cannot be read: not JSON: invalid character '[' after object name (expecting ':') [unreadable_manifest]: look for a missing comma, bracket or quote at this line or above`,
		},
		"agent as a text": {
			"-- W/oneturn.yaml --\nagents: {A: M}\n",
			"W/oneturn.yaml:1: error: agent A must be a map [wrong_shape]: write for example A: {model: M}",
		},
		"file of a Go tool": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agent: A, kind: go, file: t.py, schema: {type: object}}]\n",
			`W/oneturn.yaml:1: warning: tool a is of kind go, so its file "t.py" is not used [file_ignored]: remove file, or kind: go`,
		},
		"tool elsewhere without a name": {
			"-- W/tools.yaml --\ntools: [{agent: A, tool_type: Agent_Tool, http: {url: \"https://example.com/x\"}}]\n",
			"W/tools.yaml:1: error: a tool of agent A has neither name nor function [tool_without_function]: add name",
		},
		"file and function of a tool elsewhere": {
			"-- W/tools.yaml --\ntools: [{agent: A, tool_type: UI_Tool, name: a, file: t.py, function: f, http: {url: \"https://example.com/x\"}}]\n",
			"W/tools.yaml:1: warning: tool a is of kind http, so its file \"t.py\" is not used [file_ignored]: remove file, or http\n" +
				"W/tools.yaml:1: warning: tool a is of kind http, so its function \"f\" is not used [file_ignored]: remove function, or http",
		},
		"function that names a tool elsewhere": {
			"-- W/tools.yaml --\ntools: [{agent: A, tool_type: UI_Tool, function: f, http: {url: \"https://example.com/x\"}}]\n",
			"",
		},
		"folder without manifest": {
			"-- W/tools/t.py --\ndef a(): pass\n",
			"W: warning: no manifest of the folder names an agent or a tool, so nothing is bound [nothing_bound]: write a oneturn.yaml there with agents, models and tools, or begin the folder's name with _",
		},
		"parameters that nothing fills": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A, B, C], file: t.py, schema: {type: object}}]\n-- W/t.py --\ndef a(x, y, z): pass\n",
			"W/oneturn.yaml:1: warning: parameters x, y and z of tool a have no default and model a has no field for them [parameter_unfilled]: add a field for them to the model, or a default to the function",
		},
		"parameters that not every output fills": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A, B], file: t.py, schema: {type: object, required: [x], properties: {x: {}, y: {}, z: {}, w: {default: 1}, chat_id: {}}}}]\n" +
				"-- W/t.py --\ndef a(x, y, w, chat_id, z=1): pass\n",
			"W/oneturn.yaml:1: warning: parameter y of tool a has no default, but its field of model a may be missing: such a call ends as bad_args [parameter_uncertain]: " +
				"add a default to the function, or make its field required or give a default in the model",
		},
		"parameters that the input does not fill": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A], file: t.py, input: {type: object, required: [size], properties: {size: {type: integer}}}}]\n-- W/t.py --\ndef a(sizee): pass\n",
			"W/oneturn.yaml:1: warning: parameter sizee of tool a has no default and the input has no field for it [parameter_unfilled]: add a field for it to the input, or a default to the function",
		},
		"fields of the input without parameter": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A], file: t.py, input: {type: object, required: [size, to], properties: {size: {type: integer}, to: {}, note: {}}}}]\n-- W/t.py --\ndef a(sizee=1): pass\n",
			"W/oneturn.yaml:1: warning: no parameter of function a takes fields size and to, which the input of tool a requires: each call ends as bad_args [field_without_parameter]: " +
				"name parameters of the function size and to, or make them optional without a default",
		},
		"parameters that not every input fills": {
			"-- W/oneturn.yaml --\ntools: [{name: a, agents: [A], file: t.py, input: {type: object, properties: {size: {type: integer}}}}]\n-- W/t.py --\ndef a(size, context_variables, chat_id): pass\n",
			"W/oneturn.yaml:1: warning: parameter size of tool a has no default, but its field of the input may be missing: such a call ends as bad_args [parameter_uncertain]: " +
				"add a default to the function, or make its field required or give a default in the input",
		},
		"several errors of a model": {
			"-- W/oneturn.yaml --\nmodels:\n  M:\n    type: object\n    properties:\n      x: {type: strng}\n      y:\n        type: string\n        minLength: two\n",
			"W/oneturn.yaml:5: error: model M cannot be used: `type` is \"strng\", which is not a type of JSON Schema (\"/properties/x/type\") [bad_model]: did you mean \"string\"? Types are null, boolean, integer, number, string, array, object\n" +
				"W/oneturn.yaml:8: error: model M cannot be used: `minLength` has a value that it cannot have (\"/properties/y/minLength\") [bad_model]: write a count from 0 to 999999999",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, unpack(t, tt.files))
			var found []string
			for _, line := range lines(set, diag.SeverityError, diag.SeverityWarning) {
				if code := regexp.MustCompile(` \[[a-z_]+\]: `).FindString(line); strings.Contains(tt.want, code) {
					found = append(found, line)
				}
			}
			require.Equal(t, tt.want, strings.Join(found, "\n"))
		})
	}
}

func TestAllErrorsOfAToolAreReportedTogether(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, "-- W/oneturn.yaml --\nagents: {A: {tools: [other]}}\ntools:\n- {name: a, agent: A, file: t.py, function: away, model: Absent}\n"+
		"- {name: other, agent: B, file: t.py}\n-- W/t.py --\ndef other(): pass\n"))
	found := lines(set, diag.SeverityError)
	require.Len(t, found, 3, strings.Join(found, "\n"))
	for i, code := range []string{"[tool_unusable]", "[unknown_model]", "[tool_not_allowed]"} {
		require.Contains(t, found[i], code)
	}
}

func TestEveryErrorAndWarningHasAFix(t *testing.T) {
	t.Parallel()
	for name, text := range invalidManifests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, d := range load(t, unpack(t, "-- W/oneturn.yaml --\n"+text)).Diagnostics() {
				require.NotEmpty(t, d.Fix, d.String())
			}
		})
	}
}

func TestGoToolsThatShadowEachOtherAreFixedInGo(t *testing.T) {
	t.Parallel()
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "W", Agent: "A", Tool: "one"}, {Workflow: "W", Agent: "A", Tool: "two"},
	}})
	require.NoError(t, err)
	require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "[tool_shadowed]: bind the others to another agent or model")
}

func TestStartOfAWatchLogsWhatWasLoadedForDebuggingOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W", "oneturn.yaml"), oneTool("one"))
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	opts := bindings.Options{Root: root, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, bindings.Watch(ctx, opts, func(*bindings.Set, error) { cancel() }))
	require.Empty(t, log.String())
	_, err := bindings.Load(t.Context(), opts)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "workflows loaded"))
}
