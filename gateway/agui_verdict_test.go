package gateway_test

import (
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
