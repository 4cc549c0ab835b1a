package bindings_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

func TestToolsOfJuly2025AreRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "Generator/tools/echo.py"), "def echo(text): return text\n")
	write(t, filepath.Join(root, "Generator/tools/request_api_key.py"), "def ask_key(service): return service\n")
	write(t, filepath.Join(root, "Generator/structured_outputs.yaml"), "models: {Key: {type: model, fields: {service: {type: str}}}}\nregistry: {KeyAgent: Key}\n")
	write(t, filepath.Join(root, "Generator/agents.yaml"), "agents: {KeyAgent: {auto_tool_mode: true}, EchoAgent: {}}\n")
	write(t, filepath.Join(root, "Generator/tools.yaml"), `
backend_tools:
  - {path: workflows.Generator.tools.echo.echo, agent: EchoAgent, description: repeats it}
ui_tools:
  - {path: workflows.Generator.tools.request_api_key.ask_key, agent: KeyAgent, component: KeyInput}
`)
	set := load(t, root)
	require.Empty(t, lines(set, diag.SeverityError))
	require.Empty(t, lines(set, diag.SeverityWarning))
	b, err := set.Resolve("Generator", "KeyAgent", "Key")
	require.NoError(t, err)
	require.Equal(t, "Generator/tools/request_api_key.py", b.File)
	require.Equal(t, "ask_key", b.Function)
	require.Equal(t, "KeyInput", b.Component)
	_, err = set.Resolve("Generator", "EchoAgent", "")
	require.ErrorContains(t, err, "tool echo of agent EchoAgent (Generator/tools.yaml:3) is not called automatically")
}

func TestToolsOfJuly2025AreReadFromTheirAgents(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "Generator/tools/echo.py"), "def echo(text): return text\n")
	write(t, filepath.Join(root, "Generator/tools/keys.py"), "def ask_key(service): return service\ndef store_key(service): return service\n")
	write(t, filepath.Join(root, "Generator/agents.yaml"), "agents: {KeyAgent: {auto_tool_mode: true}, EchoAgent: {}}\n")
	const tools = `
backend_tools:
  ALL_AGENTS:
    - {path: workflows.Generator.tools.echo.echo, description: repeats it}
  KeyAgent:
    - workflows.Generator.tools.keys.store_key
ui_tools:
  KeyAgent:
    - {path: workflows.Generator.tools.keys.ask_key, ui_tool_id: KeyInput, display: inline}
lifecycle_tools:
  log: {path: workflows.Generator.tools.echo.echo, lifecycle_event: on_user_input}
`
	write(t, filepath.Join(root, "Generator/tools.yaml"), tools)
	set := load(t, root)
	require.Empty(t, lines(set, diag.SeverityError))
	b, err := set.Resolve("Generator", "KeyAgent", "")
	require.NoError(t, err)
	require.Equal(t, []string{"ask_key", "KeyInput", "inline"}, []string{b.Function, b.Component, b.Display})
	require.Len(t, set.Bindings(), 1, "backend tools are called by name only")
	for agent, tool := range map[string]string{"EchoAgent": "echo", "KeyAgent": "store_key"} {
		b, err = set.Tool("Generator", tool)
		require.NoError(t, err)
		require.Equal(t, tool, b.Function, agent)
	}
	_, err = set.Resolve("Generator", "EchoAgent", "")
	require.ErrorContains(t, err, "tool echo of agent EchoAgent (Generator/tools.yaml:4) is not called automatically", "every agent has it")

	write(t, filepath.Join(root, "Generator/tools.yaml"), strings.Replace(tools, "KeyAgent:\n    - {", "KeyAgent:\n    - 7\n    - {", 1))
	require.Contains(t, strings.Join(lines(load(t, root), diag.SeverityError), "\n"), "Generator/tools.yaml:9: error: a tool must be a map")
	write(t, filepath.Join(root, "Generator/tools.yaml"), "ui_tools: {KeyAgent: echo}\n")
	require.Contains(t, strings.Join(lines(load(t, root), diag.SeverityError), "\n"), "ui_tools.KeyAgent must be a list")
}

func TestWorkflowThatBindsNothingNamesTheReason(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "Docs/tools/t.py"), "def run(x): return x\n")
	write(t, filepath.Join(root, "Docs/tools.yaml"), "tools:\n- {agent: A, file: t.py, function: run, auto_invoke: false}\n- {agent: A, file: t.py, function: run, name: b, tool_type: Agent_Tool}\n")
	set := load(t, root)
	require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "nothing is bound: 2 of 2 tools could be called, but not automatically")
	require.Equal(t, "2 of 2 tools could be called, but not automatically (no auto_invoke: true, and no UI_Tool)", set.Empty("Docs"))
}

func TestModulesOfMozaiksAIThatDoNotExistAreFoundWithTheirLine(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "workflows")
	write(t, filepath.Join(root, "W/tools/t.py"), "from core.workflow.ui_tools import use_ui_tool\nfrom core.data.persistence import X\nimport mozaiksai.core.data\nfrom logs.logging_config import get_core_logger\ndef run(x): return x\nimport core.workflow.agents\ndef other(x): return x\n")
	write(t, filepath.Join(root, "W/tools.yaml"), "tools: [{agent: A, file: t.py, function: run, tool_type: UI_Tool}]\n")
	missing := func() (found []string) {
		for _, d := range load(t, root).Diagnostics() {
			if d.Code == "missing_modules" {
				found = append(found, d.File+" "+d.Message+" "+d.Fix)
			}
		}
		return found
	}
	found := missing()
	require.Len(t, found, 2)
	require.Contains(t, found[0], "W/tools/t.py of MozaiksAI's package core there are stand-ins")
	require.Contains(t, found[0], "not here: core.data.persistence (W/tools/t.py:2), core.workflow.agents (W/tools/t.py:6)")
	require.Contains(t, found[0], "put the package core of MozaiksAI into the workflows folder or next to it")
	require.Contains(t, found[1], "not here: mozaiksai.core.data (W/tools/t.py:3)")
	write(t, filepath.Join(root, "../core/__init__.py"), "")
	require.Len(t, missing(), 1, "the package is next to the workflows")
}

func TestAgentWithoutAToolIsNotSuggestedForItself(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W/t.py"), "def run(x): return x\n")
	write(t, filepath.Join(root, "W/agents.yaml"), "agents: {Greeter: {}, InterviewAgent: {}}\n")
	write(t, filepath.Join(root, "W/tools.yaml"), "tools: [{agent: Greeter, file: t.py, function: run, tool_type: UI_Tool}]\n")
	set := load(t, root)
	_, err := set.Resolve("W", "InterviewAgent", "")
	require.ErrorContains(t, err, "the agent has no automatic tool: no tool names it")
	require.NotContains(t, err.Error(), "did you mean")
	_, err = set.Resolve("W", "InterviewAgen", "")
	require.ErrorContains(t, err, `did you mean "InterviewAgent"?`)
	_, err = set.Resolve("W", "InterviewAgent", "Nope")
	require.ErrorContains(t, err, "the model is not known")
	require.False(t, strings.HasSuffix(err.Error(), "; "), "no model is bound, so none is named")
}
