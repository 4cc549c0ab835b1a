package docs_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	return r, payloadOf(t, r)
}

func payloadOf(t *testing.T, r *oneturn.Response) map[string]any {
	t.Helper()
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	return payload
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

// commandsOf returns the blocks of commands of a page that begin with a command.
func commandsOf(t *testing.T, page, name string) []string {
	t.Helper()
	var found []string
	for _, b := range fenced(t, page, "sh") {
		if strings.HasPrefix(b.text, name+" ") {
			found = append(found, strings.TrimSpace(b.text))
		}
	}
	require.NotEmpty(t, found, "%s: %s", page, name)
	return found
}

// requireEventsRun publishes the turns that a page shows first, with the first command for them, and requires the output there. The turns
// are printed in the order in which they end.
func requireEventsRun(t *testing.T, s *oneturntest.Server, page string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "turns.jsonl"), []byte(fenced(t, page, "jsonl")[0].text), 0o600))
	out, code := output(t, command(t, dir, "publisher", append(strings.Fields(commandsOf(t, page, "publisher")[0])[1:], "--nats", s.URL())...))
	require.Equal(t, 1, code, out)
	shown := strings.Split(strings.TrimSpace(fenced(t, page, "text")[0].text), "\n")
	got := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, got, len(shown), out)
	for _, want := range shown {
		require.True(t, slices.ContainsFunc(got, func(line string) bool { return isAbridged(line, want) }), "%s shows %q, the command prints %s", page, want, out)
	}
}

// isAbridged reports whether a line is shown as a text in which … stands for parts of it.
func isAbridged(line, shown string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*") + "$").MatchString(line)
}

func TestPlansOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	c := serveOn(t, s, oneturn.Config{Workflows: folderOf(t, "plans.md")})
	shown := fenced(t, "plans.md", "json")
	require.Len(t, shown, 8)
	requireEventsRun(t, s, "plans.md")
	halts := oneturn.TurnID{App: "default", Chat: "chat", Turn: "reserve-1"}
	r, err := c.Await(t.Context(), halts)
	require.NoError(t, err)
	require.Equal(t, events.CodeUserError, r.Code)
	requirePayload(t, shown[3], payloadOf(t, r))
	require.JSONEq(t, shown[0].text, planOf(t, fenced(t, "plans.md", "jsonl")[0].text, 1), "the plan of the page is the one that is published")

	r, payload := runProgram(t, c, oneturn.Turn{TurnID: oneturn.TurnID{Turn: "bad"}, Workflow: "Trip", Agent: "Assistant"}, shown[1].text)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	feedback := fenced(t, "plans.md", "")
	require.Len(t, feedback, 1)
	require.Equal(t, strings.TrimSpace(feedback[0].text), payload["feedback"])
	delete(payload, "feedback")
	requirePayload(t, shown[2], payload)

	dryRun := commandsOf(t, "plans.md", "turnctl retry")[0]
	require.Equal(t, fenced(t, "plans.md", "text")[1].text, runLine(t, dryRun+" --nats "+s.URL()))
	runLine(t, strings.TrimSuffix(dryRun, " --dry-run")+" --nats "+s.URL())
	halts.Turn = events.RetryKey(halts.Turn)
	r, err = c.Await(t.Context(), halts)
	require.NoError(t, err)
	require.Equal(t, events.CodeUserError, r.Code, "the hotel is still full")
	results, ok := payloadOf(t, r)["results"].([]any)
	require.True(t, ok)
	first, ok := results[0].(map[string]any)
	require.True(t, ok)
	requirePayload(t, shown[7], first)
}

// planOf returns the data of an event of a file of events.
func planOf(t *testing.T, lines string, n int) string {
	t.Helper()
	var event struct {
		Plan json.RawMessage `json:"plan"`
		Data json.RawMessage `json:"structured_data"`
	}
	require.NoError(t, json.Unmarshal([]byte(strings.Split(lines, "\n")[n]), &event))
	return cmp.Or(string(event.Plan), string(event.Data))
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
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	page := strings.Join(strings.Fields(pages(t)["plans.md"]), " ")

	// The turn is published, its question shown and answered by the commands of the page.
	dir := t.TempDir()
	event := fenced(t, "plans.md", "jsonl")[1].text
	require.NoError(t, os.WriteFile(filepath.Join(dir, "visit.jsonl"), []byte(event), 0o600))
	out, code := output(t, command(t, dir, "publisher", append(strings.Fields(commandsOf(t, "plans.md", "publisher")[1])[1:], "--nats", s.URL())...))
	require.Zero(t, code, out)
	id := oneturn.TurnID{App: "default", Chat: "visit", Turn: "visit-1"}
	requireApproval(t, s, id, shown[4])
	show, answer, ok := strings.Cut(commandsOf(t, "plans.md", "turnctl questions show")[0], "\n")
	require.True(t, ok)
	out = runLine(t, show+" --nats "+s.URL())
	_, out, ok = strings.Cut(out, "{")
	require.True(t, ok)
	var shownPayload, all map[string]any
	require.NoError(t, json.NewDecoder(strings.NewReader("{"+out)).Decode(&shownPayload))
	require.NoError(t, json.Unmarshal([]byte(shown[4].text), &all))
	require.Equal(t, map[string]any{"steps": all["steps"], "limits": all["limits"]}, shownPayload)
	require.Contains(t, runLine(t, answer+" --nats "+s.URL()), "accepted")
	r, err := c.Await(t.Context(), id)
	require.NoError(t, err)
	require.True(t, r.Success)

	// A refusal.
	plan := planOf(t, event, 0)
	turn := oneturn.Turn{TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: "visit-2"}, Workflow: "Visit", Agent: "Host", UserID: "ada"}
	require.NoError(t, json.Unmarshal([]byte(plan), &turn.Data))
	_, err = c.Publish(t.Context(), &turn)
	require.NoError(t, err)
	q := requireApproval(t, s, turn.TurnID, shown[4])
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: q, UserID: "ada", Value: json.RawMessage(`{"approved": false, "reason": "Not today."}`)})
	require.NoError(t, err)
	require.True(t, v.OK(), v.Message)
	r, err = c.Await(t.Context(), turn.TurnID)
	require.NoError(t, err)
	require.Equal(t, events.CodeCancelled, r.Code)
	require.Contains(t, page, "`"+r.Content+"`")
	requirePayload(t, shown[5], payloadOf(t, r))
	require.Empty(t, asked)

	// Answers of an agent.
	clerk := oneturn.Turn{TurnID: oneturn.TurnID{Turn: "visit-3"}, Workflow: "Visit", Agent: "Clerk"}
	r, _ = runProgram(t, c, clerk, plan)
	require.True(t, r.Success)
	require.Equal(t, "Ada is expected, badge B-4.", r.Content)
	var request struct {
		Request json.RawMessage `json:"request"`
	}
	require.NoError(t, json.Unmarshal(<-asked, &request))
	require.JSONEq(t, shown[6].text, string(request.Request))
	fails.Store(true)
	clerk.Turn = "visit-4"
	r, payload := runProgram(t, c, clerk, plan)
	require.Equal(t, events.CodeToolError, r.Code)
	require.Contains(t, page, "`"+r.Content+"`")
	require.Len(t, payload["results"], 1)
}

// requireApproval waits for the question of a turn for approval, and requires the payload that a page shows.
func requireApproval(t *testing.T, s *oneturntest.Server, id oneturn.TurnID, shown block) oneturn.QuestionID {
	t.Helper()
	found := make(chan *api.Question, 8)
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{OnQuestion: func(q *api.Question) { found <- q }})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = c.Await(ctx, id) // it ends with ctx
	}()
	q := <-found
	stop()
	<-over
	require.Equal(t, id.Turn+"#~approve/1", q.ToolCallID)
	require.Equal(t, "PlanApproval", q.Component)
	require.JSONEq(t, shown.text, string(q.Payload))
	return oneturn.QuestionID{App: id.App, Chat: id.Chat, ToolCallID: q.ToolCallID}
}

func TestOrchestrationsOfThePageEndAsItShows(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	c := serveOn(t, s, oneturn.Config{Workflows: folderOf(t, "orchestrations.md")})
	requireEventsRun(t, s, "orchestrations.md")
	shown := fenced(t, "orchestrations.md", "json")
	require.Len(t, shown, 2)
	feedback := fenced(t, "orchestrations.md", "")
	require.Len(t, feedback, 1)
	lead := oneturn.Turn{TurnID: oneturn.TurnID{Turn: "bad"}, Workflow: "Paper", Agent: "Lead"}
	_, payload := runProgram(t, c, lead, strings.Replace(shown[0].text, "result.facts", "result.fact", 1))
	require.Equal(t, strings.TrimSpace(feedback[0].text), payload["feedback"])
	require.JSONEq(t, shown[0].text, planOf(t, fenced(t, "orchestrations.md", "jsonl")[0].text, 1), "the request of the page is the one that is published")
	r, err := c.Await(t.Context(), oneturn.TurnID{App: "default", Chat: "news", Turn: "reviews-1"})
	require.NoError(t, err)
	require.False(t, r.Success)
	require.Empty(t, r.Code)
	requirePayload(t, shown[1], payloadOf(t, r))
}
