package worker_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/tools/python"
	"github.com/oneturn/oneturn/oneturntest"
)

// generationTurn is one turn of testdata/mozaiks/generations.txtar: workflow, agent, model, output.
type generationTurn [4]json.RawMessage

// event is the turn as the dispatcher of its month emitted it, with a run_id.
func (g generationTurn) event(workflow string, number int) []byte {
	return fmt.Appendf(nil, `{"kind":"structured_output_ready","agent":%[2]s,"agent_name":%[2]s,"model_name":%[3]s,"structured_data":%[4]s,"auto_tool_mode":true,`+
		`"turn_idempotency_key":"turn-%[5]d","run_id":"r1","context":{"chat_id":"chat-%[1]s","app_id":"acme","workflow_name":"%[1]s","turn_sequence":%[5]d}}`,
		workflow, g[1], g[2], g[3], number)
}

// unpackGenerations writes the workflows of the archive and returns their turns.
func unpackGenerations(t *testing.T) (root string, turns []generationTurn) {
	t.Helper()
	archive, err := txtar.ParseFile("../../testdata/mozaiks/generations.txtar")
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = strings.ReplaceAll(string(f.Data), "<BOM>", "\xef\xbb\xbf")
	}
	require.NoError(t, json.Unmarshal([]byte(files["turns.json"]), &turns))
	delete(files, "turns.json")
	root = t.TempDir()
	writeFiles(t, root, files)
	return root, turns
}

// TestFoldersOfEveryGenerationRunUnchanged: each turn ends with success, and a second delivery is a
// duplicate with the same response.
func TestFoldersOfEveryGenerationRunUnchanged(t *testing.T) {
	t.Parallel()
	root, turns := unpackGenerations(t)
	s := server(t)
	start(t, s, oneturn.Config{Workflows: root})
	c := client(t, s)
	human, err := oneturntest.StartHuman(t.Context(), s.Connect(), oneturntest.HumanOptions{App: "acme", Rules: []oneturntest.Rule{{Acts: []oneturntest.Act{{Value: map[string]any{"status": "accepted"}}}}}})
	require.NoError(t, err)
	t.Cleanup(human.Stop)
	for i, g := range turns {
		var workflow string
		require.NoError(t, json.Unmarshal(g[0], &workflow))
		published, _, err := c.PublishRaw(t.Context(), g.event(workflow, i))
		require.NoError(t, err)
		r := await(t, c, published.TurnID)
		require.Empty(t, r.Code, "%s %s: %s", g[0], g[1], r.Content)
		require.True(t, r.Success, "%s %s: %s", g[0], g[1], r.Content)
		again, _, err := c.PublishRaw(t.Context(), g.event(workflow, i))
		require.NoError(t, err)
		require.Equal(t, r, await(t, c, again.TurnID), "%s %s", g[0], g[1])
	}
	_, err = human.AwaitAnswers(t.Context(), 4) // so many of them ask
	require.NoError(t, err)
}

// TestFoldersOfEveryGenerationHaveNoErrors and bind what their months bound.
func TestFoldersOfEveryGenerationHaveNoErrors(t *testing.T) {
	t.Parallel()
	root, turns := unpackGenerations(t)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: python.Inspector("")})
	require.NoError(t, err)
	for _, d := range set.Diagnostics() {
		require.NotEqual(t, diag.SeverityError, d.Severity, d.String())
	}
	workflows := map[string]bool{}
	for _, g := range turns {
		workflows[strings.Trim(string(g[0]), `"`)] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(workflows)), set.Workflows())
	require.Len(t, set.Bindings(), len(turns)+1, "and the one whose agent is unknown")
}
