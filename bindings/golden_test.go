package bindings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// goldenBindings is what MozaiksAI binds from the recorded workflow WF, except that agents P and Q, which
// share a model, keep their own tools.
const goldenBindings = `
A   Out  greet      t.py:greet      replay GreetCard artifact
E   B3   errdict    t.py:errdict    replay
N   B4   none_tool  t.py:none_tool  replay
M   B5   needs      t.py:needs      replay
S   B1   renamed    t.py:sync_tool  replay
F   B2   fails      t.py:fails      unsafe
SL  C0   slow       t.py:slow       replay
PO  C1   positional t.py:positional replay
CI  C2   circ       t.py:circ       replay
NA  C3   nan        t.py:nan        replay
BE  C4   baseexc    t.py:baseexc    replay
MU  MU   multi_b    t.py:multi_b    replay
P   SH   multi_a    t.py:multi_a    replay
Q   SH   multi_b    t.py:multi_b    replay
X   L1   sync_tool  t.py:sync_tool  replay
Y   L2   sync_tool  t.py:sync_tool  replay
PA  P1   partial    t.py:partial    unsafe
QA  P2   snake      t.py:snake      unsafe
UA  P3   partial    t.py:partial    replay
VA  P4   snake      t.py:snake      replay
`

// workflowCopy copies the recorded workflow WF with the manifests of these extensions only.
func workflowCopy(t *testing.T, extensions ...string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "WF"), os.DirFS("../testdata/mozaiks/workflows/WF")))
	for _, ext := range []string{".json", ".yaml"} {
		unwanted, err := filepath.Glob(filepath.Join(root, "WF", "*"+ext))
		require.NoError(t, err)
		if strings.Contains(strings.Join(extensions, " "), ext) {
			require.NotEmpty(t, unwanted)
			continue
		}
		for _, name := range unwanted {
			require.NoError(t, os.Remove(name))
		}
	}
	return root
}

func TestGoldenWorkflowBindsTheSameFromJSONFromYAMLAndFromBoth(t *testing.T) {
	t.Parallel()
	for _, extensions := range [][]string{{".json"}, {".yaml"}, {".json", ".yaml"}} {
		t.Run(strings.Join(extensions, "+"), func(t *testing.T) {
			t.Parallel()
			set := load(t, workflowCopy(t, extensions...))
			var want []string
			got := make([]string, 0, len(set.Bindings()))
			for line := range strings.Lines(strings.TrimSpace(goldenBindings)) {
				want = append(want, strings.Join(strings.Fields(line), " "))
			}
			for _, b := range set.Bindings() {
				require.Equal(t, "WF", b.Workflow)
				require.NotNil(t, b.Model)
				file := strings.TrimPrefix(b.File, "WF/tools/")
				text := fmt.Sprintf("%s %s %s %s:%s %s %s %s", b.Agent, b.ModelName, b.Tool, file, b.Function, b.Effect, b.Component, b.Display)
				got = append(got, strings.TrimSpace(text))
			}
			require.ElementsMatch(t, want, got)
		})
	}
}

func TestGoldenWorkflowReportsItsOddities(t *testing.T) {
	t.Parallel()
	set := load(t, workflowCopy(t, ".yaml"))
	require.Equal(t, []string{
		`WF/tools.yaml:102: error: tool x is not bound: file "missing.py" not found in the workflow's folder or its tools folder [tool_unusable]: create tools/missing.py, or name one that is there: t.py`,
	}, lines(set, diag.SeverityError))
	require.Equal(t, []string{
		`WF/tools.yaml:28: warning: parameter must of tool needs has no default and model B5 has no field for it [parameter_unfilled]: add a field for it to the model, or a default to the function`,
		`WF/tools.yaml:40: warning: parameter name of tool positional has no default and model C1 has no field for it [parameter_unfilled]: add a field for it to the model, or a default to the function`,
		`WF/tools.yaml:60: warning: agent MU has several automatic tools; multi_a (WF/tools.yaml:56) is never called, multi_b is [tool_shadowed]: set auto_invoke: false on the others, or give them other agents`,
		`WF/tools.yaml:72: warning: agent lists something that is not a name; it is ignored [agent_not_text]: keep names only`,
		`WF/tools.yaml:102: warning: tool x names the unknown agent "GHOST" [unknown_agent]: known: A, BE, CI, E, F, M, MU, N, NA, P and 10 more`,
	}, lines(set, diag.SeverityWarning))
}

func TestYAMLWinsOverJSONAndADifferenceIsReported(t *testing.T) {
	t.Parallel()
	root := workflowCopy(t, ".json", ".yaml")
	require.NotContains(t, strings.Join(lines(load(t, root), diag.SeverityWarning), "\n"), "ignored_manifest")
	write(t, filepath.Join(root, "WF", "tools.json"), `{"tools": []}`)
	set := load(t, root)
	require.Len(t, set.Bindings(), 20)
	require.Contains(t, lines(set, diag.SeverityWarning),
		"WF/tools.json: warning: tools.json is ignored because tools.yaml is there, and they differ [ignored_manifest]: remove one of them")
}

// TestGoldenArguments has the tool_args that MozaiksAI's own handler was seen to pass.
func TestGoldenArguments(t *testing.T) {
	t.Parallel()
	set := load(t, workflowCopy(t, ".json"))
	tests := []struct {
		agent, model, data, want string
	}{
		{"A", "Out", `{"name":"Al","agent_message":" hi ","extra_field":9}`, `{"agent":"A","agentName":"A","agent_message":" hi ","chat_id":"c1","name":"Al"}`},
		{"A", "Out", `{"name":"Al"}`, `{"agent":"A","agentName":"A","agent_message":null,"chat_id":"c1","name":"Al"}`},
		{"S", "B1", `{"NAME":"x","name":"y"}`, `{"name":"y"}`},
		{"F", "B2", `{"name":"x"}`, `{"name":"x"}`},
		{"M", "B5", `{"name":"x"}`, `{"name":"x"}`},
		{"MU", "MU", `{"name":"x"}`, `{"name":"x"}`},
		{"PA", "P1", `{"name":"x","other":"y"}`, `{"name":"x"}`},
		{"UA", "P3", `{"name":"x","other":"y"}`, `{"name":"x"}`},
		{"VA", "P4", `{"ModuleAgents":["a"]}`, `{"module_agents":["a"]}`},
		{"PO", "C1", `{"name":"x"}`, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.agent, func(t *testing.T) {
			t.Parallel()
			b, err := set.Resolve("WF", tt.agent, tt.model)
			require.NoError(t, err)
			data, err := events.Decode([]byte(tt.data))
			require.NoError(t, err)
			checked, violations := b.Model.Check(data)
			require.Empty(t, violations)
			args, _ := b.Args(checked, goldenTurn(tt.agent))
			got, err := events.AppendJSON(nil, args)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
}

func goldenTurn(agent string) *events.StructuredOutputReady {
	return &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: "app", Chat: "c1", Turn: "turn-001"},
		Workflow: "WF", Agent: agent, ContextVariables: map[string]any{"x": "1"},
	}
}

func TestGoldenContext(t *testing.T) {
	t.Parallel()
	set := load(t, workflowCopy(t, ".json"))
	b, err := set.Resolve("WF", "A", "Out")
	require.NoError(t, err)
	require.True(t, b.AcceptsContext)
	turn := goldenTurn("A")
	require.Equal(t, map[string]any{
		"x": "1", "chat_id": "c1", "app_id": "app", "workflow_name": "WF", "turn_idempotency_key": "turn-001", "agent_name": "A",
	}, b.Context(turn, turn.ContextVariables))
	require.Equal(t, map[string]any{"x": "1"}, turn.ContextVariables, "the snapshot of the event is not modified")

	b, err = set.Resolve("WF", "S", "B1")
	require.NoError(t, err)
	require.False(t, b.AcceptsContext)
}
