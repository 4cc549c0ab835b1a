package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

const askingManifest = `
agents: {Planner: {model: Plan}, Late: {model: Late}, Blunt: {model: Blunt}, Plain: {model: Plain}}
models:
  Plan: {type: object, properties: {notes: {type: string}}}
  Late: {type: object, properties: {notes: {type: string}}}
  Blunt: {type: object, properties: {notes: {type: string}}}
  Plain: {type: object, properties: {notes: {type: string}}}
tools:
  - {name: plan, agent: Planner, file: t.py, effect: replay}
  - {name: late, agent: Late, file: t.py, effect: replay}
  - {name: blunt, agent: Blunt, file: t.py, effect: unsafe}
  - {name: plain, agent: Plain, file: t.py, effect: none}
`

const askingTools = `
import asyncio, oneturn
from core.workflow.ui_tools import use_ui_tool, UIToolTimeoutError
def note(path, text):
    with open(path, "a") as f: f.write(text + "\n")
def charge(path):
    note(path, "charged")
    return {"paid": (1, 2)}
async def plan(notes, chat_id, context_variables):
    note(notes, "entered")
    seen = context_variables.get("seen", 0)
    context_variables.set("seen", seen + 1)
    try:
        paid = await oneturn.step("charge", charge, notes)
        votes = await asyncio.gather(*(use_ui_tool("Vote", {"voter": voter}, chat_id=chat_id) for voter in "abc"))
        name = await oneturn.request_input("Name?")
    except Exception as e:
        note(notes, "exception " + repr(e))
        raise
    note(notes, "continued")
    return {"status": "success", "message": "%s %s %s %s" % (paid["paid"], [v["yes"] for v in votes], name, [v["ui_event_id"] for v in votes])}
async def late(notes):
    try: await use_ui_tool("Vote", {}, timeout=0.2)
    except TimeoutError as e: return {"status": "success", "message": type(e).__name__}
def blunt(notes):
    note(notes, "entered")
    return {"message": oneturn.ask("Vote", {})["text"]}
def plain(notes): return {"message": "plain"}
`

// asking is a worker whose Python tools ask, and what a test needs to answer.
type asking struct {
	*testing.T
	server *oneturntest.Server
	config oneturn.Config
	notes  string
	client *oneturn.Client
	asked  *nats.Subscription
}

func newAsking(t *testing.T, park time.Duration) *asking {
	t.Helper()
	root := filepath.Join(t.TempDir(), "workflows")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "Asks", "tools"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Asks", "oneturn.yaml"), []byte(askingManifest), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Asks", "tools", "t.py"), []byte(askingTools), 0o600))
	a := &asking{T: t, server: server(t), notes: filepath.Join(t.TempDir(), "notes")}
	a.config = oneturn.Config{Workflows: root, ParkAfter: park, Python: oneturn.Python{Children: 1}, ToolTimeout: 5 * time.Second}
	var err error
	a.asked, err = a.server.Connect().SubscribeSync("oneturn.events.acme.chat.*.*.ask.*")
	require.NoError(t, err)
	a.client = client(t, a.server)
	return a
}

// work runs a worker until stop is called, or the test ends.
func (a *asking) work() (stop func()) {
	a.Helper()
	w, err := oneturn.NewWorker(a.server.Connect(), a.config)
	require.NoError(a, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(a, <-done)
		}
	}
	a.Cleanup(stop)
	return stop
}

func (a *asking) turn(agent, model, turn string) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "acme", Chat: "chat", Turn: turn}, Workflow: "Asks", Agent: agent, Model: model,
		Data: map[string]any{"notes": a.notes},
	}
}

// questions waits for n questions and returns their ids with their payload's who.
func (a *asking) questions(n int) map[string]any {
	a.Helper()
	ids := map[string]any{}
	for range n {
		m, err := a.asked.NextMsg(20 * time.Second)
		require.NoError(a, err)
		body, err := events.Parse(m.Data)
		require.NoError(a, err)
		payload, ok := body.Data["payload"].(map[string]any)
		require.True(a, ok)
		id, ok := body.Data["tool_call_id"].(string)
		require.True(a, ok)
		ids[id] = payload["voter"]
	}
	return ids
}

func (a *asking) answer(id string, value any) {
	a.Helper()
	v, err := a.client.Answer(a.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: id}, Value: value, Workflow: "Asks"})
	require.NoError(a, err)
	require.Equal(a, events.AnswerAccepted, v.Code, v.Message)
}

func (a *asking) noted() string {
	a.Helper()
	data, err := os.ReadFile(a.notes)
	require.NoError(a, err)
	return strings.Join(strings.Fields(string(data)), " ")
}

func TestPythonToolThatAsksResumesInAnotherWorkerAfterItWasParked(t *testing.T) {
	t.Parallel()
	a := newAsking(t, time.Hour) // a run may be parked between the questions of a gather, this one is not
	stop := a.work()
	publish(t, a.client, a.turn("Planner", "Plan", "t1"))
	require.Equal(t, map[string]any{"t1/1": "a", "t1/2": "b", "t1/3": "c"}, a.questions(3), "numbered as the tool asks them")
	stop() // which parks it
	a.work()
	for i, id := range []string{"t1/3", "t1/1", "t1/2"} {
		a.answer(id, map[string]any{"yes": i == 0})
	}
	require.Contains(t, a.questions(1), "t1/4")
	a.answer("t1/4", "Ada")
	r := do(t, a.client, a.turn("Planner", "Plan", "t1"))
	require.True(t, r.Success, r.Content)
	require.Equal(t, "[1, 2] [False, False, True] Ada ['t1/1', 't1/2', 't1/3']", r.Content)
	require.Equal(t, []string{"seen"}, r.ContextKeys)
	notes := a.noted()
	require.Equal(t, 1, strings.Count(notes, "charged"), notes)
	require.Equal(t, 1, strings.Count(notes, "continued"), notes)
	require.NotContains(t, notes, "exception", "a parked run does not fail the tool")
	require.GreaterOrEqual(t, strings.Count(notes, "entered"), 2, notes)
	requireDrained(t, a.server)
}

func TestPythonToolThatAsksWaitsInMemory(t *testing.T) {
	t.Parallel()
	a := newAsking(t, time.Hour)
	a.work()
	publish(t, a.client, a.turn("Planner", "Plan", "t1"))
	for id := range a.questions(3) {
		a.answer(id, map[string]any{"yes": true})
	}
	require.Contains(t, a.questions(1), "t1/4")
	a.answer("t1/4", map[string]any{"text": "Ada"})
	r := do(t, a.client, a.turn("Planner", "Plan", "t1"))
	require.Equal(t, "[1, 2] [True, True, True] Ada ['t1/1', 't1/2', 't1/3']", r.Content)
	require.Equal(t, "entered charged continued", a.noted())
	requireDrained(t, a.server)
}

func TestPythonToolSeesThatItsQuestionExpired(t *testing.T) {
	t.Parallel()
	for name, park := range map[string]time.Duration{"parked": time.Millisecond, "in memory": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t, park)
			a.work()
			r := do(t, a.client, a.turn("Late", "Late", "t1"))
			require.Equal(t, "UIToolTimeoutError", r.Content)
			require.True(t, r.Success)
		})
	}
}

// TestPythonToolsThatWaitDoNotDelayOthers has many unsafe, blocking tools wait in the one process
// that the workflow has.
func TestPythonToolsThatWaitDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	const waiting = 40
	a := newAsking(t, time.Millisecond)
	a.config.Slots = 4
	a.work()
	turns := make([]*oneturn.Turn, waiting)
	for i := range turns {
		turns[i] = a.turn("Blunt", "Blunt", "t"+strconv.Itoa(i))
	}
	publish(t, a.client, turns...)
	a.questions(waiting)
	require.Equal(t, "plain", do(t, a.client, a.turn("Plain", "Plain", "plain")).Content)
	for i, turn := range turns {
		a.answer(turn.Turn+"/1", map[string]any{"text": strconv.Itoa(i)})
	}
	for i, turn := range turns {
		require.Equal(t, strconv.Itoa(i), do(t, a.client, turn).Content)
	}
	require.Equal(t, strings.TrimSpace(strings.Repeat("entered ", waiting)), a.noted())
	requireDrained(t, a.server)
}
