package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

// The server goes through all that lies between when it searches a stream for the next message of a
// subject, and stores nothing meanwhile.
func TestQuestionsOfATenantAreFoundWithoutSearchingOthers(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	of := func(app, chat string) oneturn.TurnID {
		id := turnOf(chat, "", "t")
		id.App = app
		return id
	}
	want := []string{a.ask(of("acme", "first"), "1")}
	for n := range 30 {
		a.ask(of("beta", fmt.Sprint("c", n)), "1")
	}
	want = append(want, a.ask(of("acme", "last"), "1"))

	requests, err := a.nc.SubscribeSync("$JS.API.STREAM.MSG.GET.ONETURN_TIMERS")
	require.NoError(t, err)
	require.NoError(t, a.nc.Flush())
	ids, _ := a.questions(oneturn.QuestionFilter{App: "acme"})
	require.Equal(t, want, ids)
	require.NoError(t, a.nc.Flush())
	for {
		m, err := requests.NextMsg(50 * time.Millisecond)
		if err != nil {
			require.ErrorIs(t, err, nats.ErrTimeout)
			return
		}
		require.NotContains(t, string(m.Data), "next_by_subj", "a search: %s", m.Data)
	}
}
