package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

func TestRunAsksAgainForTheVerdictOnAnAnswerSoThatItEndsAlsoWithARefusal(t *testing.T) {
	t.Parallel()
	g := open(t, quick)
	stop := g.runWorker()
	g.lists(g.http.URL)
	question := g.ask()
	stop()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	answers := make(chan *nats.Msg, 10)
	sub, err := g.nc.ChanSubscribe(space.InKind(subjects.DefaultPool, events.KindToolCallResponse), answers)
	require.NoError(t, err)
	require.NoError(t, g.nc.Flush())
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	run := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", resume(map[string]any{
		"interruptId": agui.InterruptID(question), "status": "resolved", "payload": map[string]any{"status": 5},
	})))
	run.until(agui.TypeRunStarted)
	for range 2 { // the result of the first one is lost
		select {
		case <-answers:
		case <-time.After(20 * time.Second):
			require.Fail(t, "the answer was not sent again")
		}
	}
	t.Cleanup(g.runWorker())
	end := run.end()
	require.Equal(t, string(agui.TypeRunError), end["type"], "%v", run.events)
	require.Equal(t, "INVALID_RESUME", end["code"])
}

func TestRunThatWaitsForVerdictsTakesNoRoomForTheRestOfItsInput(t *testing.T) {
	t.Parallel()
	g := open(t, quick)
	stop := g.runWorker()
	g.lists(g.http.URL)
	g.turn("c", "second", "ada", "Clerk", "Order", map[string]any{"item": "vase"})
	g.ask()
	var asked struct{ Waits []map[string]any }
	require.Eventually(t, func() bool {
		g.get("ada", "/api/chats/app/c/waits").into(&asked)
		return len(asked.Waits) == 2
	}, 20*time.Second, 20*time.Millisecond)
	stop()
	large := func(in map[string]any) { // two of them are more than a user may have at a time
		in["messages"] = []any{map[string]any{"id": "old", "role": "assistant", "content": strings.Repeat("x", 7<<20)}}
	}
	waiting := g.run(g.http.URL, "ada", "/agui/Shop", input("r1", func(in map[string]any) {
		large(in)
		answers := []any{}
		for _, q := range asked.Waits {
			answers = append(answers, map[string]any{
				"interruptId": agui.InterruptID(text(q["tool_call_id"])), "status": "resolved", "payload": map[string]any{"status": "yes"},
			})
		}
		in["resume"] = answers
	}))
	waiting.until(agui.TypeRunStarted)
	other := g.run(g.http.URL, "ada", "/agui/Shop", input("r2", func(in map[string]any) {
		large(in)
		in["threadId"] = "other"
	}))
	require.Equal(t, http.StatusOK, other.status)
	t.Cleanup(g.runWorker())
	require.Equal(t, "success", outcome(waiting.end()), "%v", waiting.events)
}
