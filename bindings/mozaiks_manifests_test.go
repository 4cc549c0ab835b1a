package bindings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

// TestOddManifestsBindWhatTheyCanAndReportTheRest reads testdata/odd: each archive is a folder of
// workflows with the shapes of real manifests, the bindings they must give and the errors and
// warnings they must bring.
func TestOddManifestsBindWhatTheyCanAndReportTheRest(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/odd/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			files := parseArchive(string(text))
			want := strings.TrimSpace(files["want"])
			delete(files, "want")
			root := t.TempDir()
			for file, content := range files {
				write(t, filepath.Join(root, filepath.FromSlash(file)), strings.ReplaceAll(content, "<BOM>", "\xef\xbb\xbf"))
			}
			set := load(t, root)
			var got []string
			for _, b := range set.Bindings() {
				got = append(got, fmt.Sprintf("%s %s %q %s %s", b.Workflow, b.Agent, b.ModelName, b.Tool, b.Effect))
			}
			got = append(got, lines(set, diag.SeverityError, diag.SeverityWarning, diag.SeverityInfo)...)
			require.Equal(t, want, strings.Join(got, "\n"))
		})
	}
}

func TestRootWithManifestsIsOneWorkflow(t *testing.T) {
	t.Parallel()
	root := filepath.Join(unpack(t, `
-- Solo/oneturn.yaml --
tools: [{name: greet, agent: A, file: t.py}]
-- Solo/tools/t.py --
def greet(): pass
`), "Solo")
	set := load(t, root)
	require.Equal(t, []string{"Solo"}, set.Workflows())
	b, err := set.Resolve("Solo", "A", "")
	require.NoError(t, err)
	require.Equal(t, "tools/t.py", b.File)
	require.Equal(t, ".", b.Dir)
	require.Contains(t, lines(set, diag.SeverityInfo)[0], "root_is_workflow")
}

func TestOnlyFoldersWithManifestsOrToolsAreWorkflows(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- ByOneturn/oneturn.yaml --
-- ByOrchestrator/orchestrator.json --
-- ByTools/tools.yaml --
-- ByAgents/agents.yml --
-- ByModels/structured_outputs.json --
-- ByFolder/tools/t.py --
-- .hidden/tools.yaml --
-- _pack/tools.yaml --
-- docs/readme.md --
-- only_context/context_variables.yaml --
-- file.yaml --
`))
	require.Equal(t, []string{"ByAgents", "ByFolder", "ByModels", "ByOneturn", "ByOrchestrator", "ByTools"}, set.Workflows())
	findings := lines(set, diag.SeverityError, diag.SeverityWarning, diag.SeverityInfo)
	require.Len(t, findings, 6)
	require.Equal(t, "ByFolder: warning: no manifest of the folder names an agent or a tool, so nothing is bound [nothing_bound]: "+
		"write a oneturn.yaml there with agents, models and tools, or begin the folder's name with _", findings[1])
}

func TestPythonRequirementsLeaveOutOwnAndHostModules(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
tools: [{name: f, agent: A, file: main.py}]
-- W/main.py --
import requests
import helper
import sibling
from core import x
from oneturn import call
key = os.environ["API_KEY"]
def f(): pass
-- W/helper.py --
-- W/tools/sibling.py --
import numpy
-- W/tests/test_f.py --
import pytest
`))
	imports, env := set.Python("W")
	require.Equal(t, []string{"numpy", "requests"}, imports)
	require.Equal(t, []string{"API_KEY"}, env)
	imports, env = set.Python("Unknown")
	require.Empty(t, imports)
	require.Empty(t, env)
}

func TestDigestChangesWithManifestsAndCodeOnly(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- W/oneturn.yaml --
tools: [{name: f, agent: A, file: t.py}]
-- W/tools/t.py --
def f(): pass
-- Other/oneturn.yaml --
`)
	first := load(t, root)
	require.Len(t, first.Digest(), 16)
	write(t, filepath.Join(root, "W", "notes.txt"), "x")
	write(t, filepath.Join(root, "W", ".git", "x.py"), "x")
	require.Equal(t, first.Digest(), load(t, root).Digest())
	write(t, filepath.Join(root, "W", "tools", "t.py"), "def f(): return 1\n")
	code := load(t, root)
	require.NotEqual(t, first.WorkflowDigest("W"), code.WorkflowDigest("W"))
	require.NotEqual(t, first.Digest(), code.Digest())
	require.Equal(t, first.WorkflowDigest("Other"), code.WorkflowDigest("Other"))
	write(t, filepath.Join(root, "W", "oneturn.yaml"), "tools: [{name: f, agent: A, file: t.py, effect: none}]\n")
	require.NotEqual(t, code.WorkflowDigest("W"), load(t, root).WorkflowDigest("W"))
}

func TestWorkflowOfMessagesNeedsNoTool(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{
		"handoffs": "handoffs: [{from: A, to: user}]",
		"triggers": "agents: {A: }\ncontext: {done: {type: boolean, default: false, source: {type: state, triggers: [{type: agent_text, agent: A, match: {equals: NEXT}}]}}}",
		"decider":  "agents: {A: }\nhandoffs: [{from: A, to: user}]\ntools: [{name: t, kind: go, auto: false}]",
	} {
		set := load(t, unpack(t, "\n-- W/oneturn.yaml --\n"+manifest+"\n"))
		for _, finding := range lines(set, diag.SeverityError, diag.SeverityWarning) {
			require.NotContains(t, finding, "nothing_bound", name)
		}
	}
}
