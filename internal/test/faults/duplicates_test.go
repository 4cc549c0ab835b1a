package faults_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/subjects"
)

// F06: a turn is published a thousand times over eight connections, within the duplicate window
// of the stream and after it, with and without Nats-Msg-Id. It runs once, has one response, and the turns of others continue.
func TestTurnThatIsPublishedAThousandTimesRunsOnce(t *testing.T) {
	t.Parallel()
	const conns, each, window = 8, 125, 500 * time.Millisecond
	r := newRig(t)
	in, err := r.js.Stream(t.Context(), r.space.InStream())
	require.NoError(t, err)
	config := in.CachedInfo().Config
	config.Duplicates = window
	_, err = r.js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "unsafe")}})
	var clients []*oneturn.Client
	for i := range conns {
		c, err := oneturn.NewClient(r.server.Connect(), oneturn.ClientOptions{WithoutMsgID: i%2 == 0})
		require.NoError(t, err)
		clients = append(clients, c)
	}
	l := r.load(100)
	r.goesOn(l, 100)
	from := time.Now()
	one := turn("Work", "storm", "t", "unsafe", 100)
	r.accept(one, false)
	storm := func(n int) {
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() {
				for range n {
					copied := *one
					if _, err := c.Publish(t.Context(), &copied); err != nil {
						t.Errorf("publish: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	storm(each / 2)
	named := clients[1]
	require.Eventually(t, func() bool {
		copied := *one
		receipt, err := named.Publish(t.Context(), &copied)
		return err == nil && !receipt.Duplicate
	}, 20*time.Second, 2*window, "the duplicate window does not end")
	storm(each - each/2)
	require.True(t, r.await(one.TurnID).Success)
	r.goesOn(l, 50)
	to := time.Now()
	facts := r.settle(l)
	require.Equal(t, 1, r.entered(one.TurnID))
	require.Greater(t, r.metric("oneturn_duplicates_total"), conns*each/2)
	require.Empty(t, harness.CheckShare(facts, from, to, bystander))
}

// F07: a turn key comes again with other data: while the first turn runs and after it has ended,
// within the duplicate window and past it. The first data keeps its response, the others never
// run and each is a dead letter.
func TestKeyThatComesAgainWithOtherDataKeepsItsFirstOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "idempotent")}})
	named, err := oneturn.NewClient(r.server.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	one := turn("Work", "chat", "t", "idempotent", 400)
	r.publish(one, false)
	again := func(c *oneturn.Client, millis int) {
		_, err := c.Publish(t.Context(), turn("Work", "chat", "t", "idempotent", millis))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return r.entered(one.TurnID) == 1 }, 10*time.Second, time.Millisecond)
	again(r.client, 1) // the server knows no id of it: as if the window had ended
	again(named, 2)
	first := r.await(one.TurnID)
	require.True(t, first.Success)
	again(r.client, 3)
	again(named, 4)
	facts := r.settle(nil)
	require.Len(t, facts.Dead, 4)
	for _, letter := range facts.Dead {
		require.Equal(t, "turn_conflict", letter.Reason)
	}
	require.Equal(t, 1, r.entered(one.TurnID))
	require.Equal(t, 4, r.metric("oneturn_conflicts_total"))
	require.Equal(t, first, r.await(one.TurnID))
}

// F08: the turns of a chat are delivered in another order than they were published in. Each has
// its call before its response; nothing is promised between them.
func TestTurnsOfAChatThatAreDeliveredOutOfOrderKeepTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Work", "unsafe")}})
	var late, soon []*oneturn.Turn
	for i := range 20 {
		workflow, turns := "Later", &late // no worker knows it yet: its turns are redelivered again and again
		if i%2 == 1 {
			workflow, turns = "Work", &soon
		}
		*turns = append(*turns, turn(workflow, "chat", strconv.Itoa(i), "unsafe", i%3))
		r.publish((*turns)[len(*turns)-1], false)
	}
	for _, t := range soon {
		r.await(t.TurnID)
	}
	r.start(oneturn.Config{Tools: []oneturn.Tool{r.tool("Later", "unsafe")}})
	for _, t := range late {
		r.await(t.TurnID)
	}
	facts := r.settle(nil)
	order := map[string]uint64{}
	for _, record := range facts.Journal {
		k, ok := subjects.ParseKey(record.Key)
		require.True(t, ok)
		if k.Kind == events.KindToolCall {
			order[k.String()] = record.Seq
		}
	}
	seq := func(one *oneturn.Turn) uint64 {
		return order[subjects.TurnKey(one.App, one.Chat, "", one.Turn).String()]
	}
	require.Greater(t, seq(late[0]), seq(soon[len(soon)-1]), "the first turn has to come after the last one to show anything")
}
