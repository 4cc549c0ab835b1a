package docs_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
)

func TestProgramsThatExamplesShowAreTheirFiles(t *testing.T) {
	t.Parallel()
	for example, name := range map[string]string{"09-plan": "plan.json", "10-orchestration": "request.json"} {
		file, err := os.ReadFile("../examples/" + example + "/" + name)
		require.NoError(t, err)
		shown := fenced(t, "../examples/"+example+"/README.md", "json")
		require.Len(t, shown, 1, example)
		require.Equal(t, string(file), shown[0].text, example)
	}
}

// runProgram runs a program of a page with the manifest of that page.
func runProgram(t *testing.T, c *oneturn.Client, turn oneturn.Turn, program string) (r *oneturn.Response, payload map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(program), &turn.Data))
	turn.App, turn.Chat = "app", "chat"
	r, err := c.Do(t.Context(), &turn)
	require.NoError(t, err)
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	return r, payload
}

// untimed returns JSON without the durations of a run.
func untimed(t *testing.T, text string) string {
	t.Helper()
	var drop func(v any)
	drop = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range []string{"duration_ms", "total_duration_ms", "elapsed_ms"} {
				delete(v, key)
			}
			for _, child := range v {
				drop(child)
			}
		case []any:
			for _, child := range v {
				drop(child)
			}
		}
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v), "%s", text)
	drop(v)
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

func requirePayload(t *testing.T, shown block, payload map[string]any) {
	t.Helper()
	got, err := json.Marshal(payload)
	require.NoError(t, err)
	require.JSONEq(t, untimed(t, shown.text), untimed(t, string(got)), "line %d, got %s", shown.line, got)
}

func TestPlansOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	c := serve(t, oneturn.Config{Workflows: folderOf(t, "plans.md")})
	shown := fenced(t, "plans.md", "json")
	require.Len(t, shown, 4)
	r, payload := runProgram(t, c, oneturn.Turn{TurnID: oneturn.TurnID{Turn: "bad"}, Workflow: "Trip", Agent: "Assistant"}, shown[1].text)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	feedback := fenced(t, "plans.md", "")
	require.Len(t, feedback, 1)
	require.Equal(t, strings.TrimSpace(feedback[0].text), payload["feedback"])
	delete(payload, "feedback")
	requirePayload(t, shown[2], payload)
	r, payload = runProgram(t, c, oneturn.Turn{TurnID: oneturn.TurnID{Turn: "halts"}, Workflow: "Trip", Agent: "Assistant"}, shown[0].text)
	require.Equal(t, events.CodeUserError, r.Code)
	requirePayload(t, shown[3], payload)
}

func TestOrchestrationsOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	c := serve(t, oneturn.Config{Workflows: folderOf(t, "orchestrations.md")})
	shown := fenced(t, "orchestrations.md", "json")
	require.Len(t, shown, 2)
	feedback := fenced(t, "orchestrations.md", "")
	require.Len(t, feedback, 1)
	lead := oneturn.Turn{TurnID: oneturn.TurnID{Turn: "bad"}, Workflow: "Paper", Agent: "Lead"}
	_, payload := runProgram(t, c, lead, strings.Replace(shown[0].text, "result.facts", "result.fact", 1))
	require.Equal(t, strings.TrimSpace(feedback[0].text), payload["feedback"])
	lead.Turn = "runs"
	r, payload := runProgram(t, c, lead, shown[0].text)
	require.False(t, r.Success)
	require.Empty(t, r.Code)
	requirePayload(t, shown[1], payload)
}
