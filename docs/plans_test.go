package docs_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
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
	turn.App, turn.Chat = cmp.Or(turn.App, "app"), cmp.Or(turn.Chat, "chat")
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

// runLine runs a line of a page in a shell that finds the commands, and returns what it prints.
func runLine(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir, cmd.Env = t.TempDir(), slices.Concat(command(t, "", "turnctl").Env, []string{"PATH=" + bin(t) + ":" + os.Getenv("PATH")})
	out, code := output(t, cmd)
	require.Zero(t, code, "%s: %s", line, out)
	return out
}

// requireEventRuns publishes the event that a page shows, with the first command that it shows, and requires the output there.
func requireEventRuns(t *testing.T, s *oneturntest.Server, page string) {
	t.Helper()
	event := fenced(t, page, "jsonl")
	require.Len(t, event, 1, page)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "turns.jsonl"), []byte(event[0].text), 0o600))
	line, ok := strings.CutPrefix(strings.TrimSpace(fenced(t, page, "sh")[0].text), "publisher ")
	require.True(t, ok, page)
	out, code := output(t, command(t, dir, "publisher", append(strings.Fields(line), "--nats", s.URL())...))
	require.Zero(t, code, out)
	for part := range strings.SplitSeq(fenced(t, page, "text")[0].text, "…") {
		at := strings.Index(out, part)
		require.GreaterOrEqual(t, at, 0, "%s shows %q, the command prints %s", page, part, out)
		out = out[at+len(part):]
	}
	require.Empty(t, out, page)
}

func TestPlansOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	c := serveOn(t, s, oneturn.Config{Workflows: folderOf(t, "plans.md")})
	shown := fenced(t, "plans.md", "json")
	require.Len(t, shown, 8)
	requireEventRuns(t, s, "plans.md")
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

	line, ok := strings.CutPrefix(strings.TrimSpace(fenced(t, "plans.md", "sh")[2].text), "turnctl ")
	require.True(t, ok)
	out, code := output(t, command(t, t.TempDir(), "turnctl", append(strings.Fields(line), "--nats", s.URL())...))
	require.Zero(t, code, out)
	require.Equal(t, fenced(t, "plans.md", "text")[1].text, out)
	retried, err := c.Retry(t.Context(), &oneturn.Retry{TurnID: r.TurnID})
	require.NoError(t, err)
	r, err = c.Await(t.Context(), retried.TurnID)
	require.NoError(t, err)
	require.Equal(t, events.CodeUserError, r.Code, "the hotel is still full")
	results, ok := r.Payload.(map[string]any)["results"].([]any)
	require.True(t, ok)
	first, ok := results[0].(map[string]any)
	require.True(t, ok)
	requirePayload(t, shown[7], first)
}

func TestApprovalsAndAnswersAreAsThePageShows(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	work(t, s, oneturn.Config{Workflows: folderOf(t, "plans.md"), ParkImmediately: true})
	shown := fenced(t, "plans.md", "json")
	require.Len(t, shown, 8)
	asked, fails := make(chan []byte, 8), atomic.Bool{}
	_, err := s.Connect().Subscribe("agents.writer", func(m *nats.Msg) {
		asked <- m.Data
		reply := nats.NewMsg(m.Reply)
		reply.Data = []byte(`{"content": "Ada is expected, badge B-4."}`)
		if fails.Load() {
			reply.Header.Set(micro.ErrorCodeHeader, "500")
			reply.Header.Set(micro.ErrorHeader, "no model")
		}
		if err := m.RespondMsg(reply); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, err)
	const plan = `{"type": "tool_calls", "calls": [{"tool_name": "admit", "arguments": {"guest": "Ada"}}]}`
	byCommand := func() { // the question is shown and answered
		show, answer, ok := strings.Cut(strings.TrimSpace(fenced(t, "plans.md", "sh")[1].text), "\n")
		require.True(t, ok)
		out := runLine(t, show+" --nats "+s.URL())
		_, out, ok = strings.Cut(out, "{")
		require.True(t, ok)
		var payload, all map[string]any
		require.NoError(t, json.NewDecoder(strings.NewReader("{"+out)).Decode(&payload))
		require.NoError(t, json.Unmarshal([]byte(shown[4].text), &all))
		require.Equal(t, map[string]any{"steps": all["steps"], "limits": all["limits"]}, payload)
		require.Contains(t, runLine(t, answer+" --nats "+s.URL()), "accepted")
	}
	visit := func(id oneturn.TurnID, answer string) (*oneturn.Response, map[string]any) {
		var c *oneturn.Client
		c, err = oneturn.NewClient(s.Connect(), oneturn.ClientOptions{OnQuestion: func(q *api.Question) {
			require.Equal(t, id.Turn+"#~approve/1", q.ToolCallID)
			require.Equal(t, "PlanApproval", q.Component)
			require.JSONEq(t, shown[4].text, string(q.Payload))
			if answer == "" {
				byCommand()
				return
			}
			v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: "chat", ToolCallID: q.ToolCallID}, UserID: "ada", Value: json.RawMessage(answer)})
			require.NoError(t, err)
			require.True(t, v.OK(), v.Message)
		}})
		require.NoError(t, err)
		return runProgram(t, c, oneturn.Turn{TurnID: id, Workflow: "Visit", Agent: "Host", UserID: "ada"}, plan)
	}
	page := strings.Join(strings.Fields(pages(t)["plans.md"]), " ")
	r, _ := visit(oneturn.TurnID{App: "default", Chat: "visit", Turn: "visit-1"}, "")
	require.True(t, r.Success)
	require.Equal(t, "Ada is expected, badge B-4.", r.Content)
	var request struct {
		Request json.RawMessage `json:"request"`
	}
	require.NoError(t, json.Unmarshal(<-asked, &request))
	require.JSONEq(t, shown[6].text, string(request.Request))

	r, payload := visit(oneturn.TurnID{Turn: "visit-2"}, `{"approved": false, "reason": "Not today."}`)
	require.Equal(t, events.CodeCancelled, r.Code)
	require.Contains(t, page, "`"+r.Content+"`")
	requirePayload(t, shown[5], payload)
	require.Empty(t, asked)

	fails.Store(true)
	r, payload = visit(oneturn.TurnID{Turn: "visit-3"}, `{"approved": true}`)
	require.Equal(t, events.CodeToolError, r.Code)
	require.Contains(t, page, "`"+r.Content+"`")
	require.Len(t, payload["results"], 1)
}

func TestOrchestrationsOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	c := serveOn(t, s, oneturn.Config{Workflows: folderOf(t, "orchestrations.md")})
	requireEventRuns(t, s, "orchestrations.md")
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
