//go:build timed

package hostile_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// largeChat is how many turns of one tenant there are.
const largeChat = 100_000

// fill publishes a message for each turn of a large chat.
func (l *lab) fill(subject func(i int) string) {
	l.Helper()
	for i := range largeChat {
		_, err := l.js.PublishAsync(subject(i), []byte("{}"), jetstream.WithStallWait(20*time.Second))
		require.NoError(l, err)
	}
	<-l.js.PublishAsyncComplete()
}

// writes returns the median time that a write of another tenant takes.
func (l *lab) writes(subject func(i int) string) time.Duration {
	l.Helper()
	const samples = 200
	all := make([]time.Duration, 0, samples)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := range samples {
		at := time.Now()
		_, err := l.js.Publish(l.Context(), subject(i), []byte("{}"))
		require.NoError(l, err)
		all = append(all, time.Since(at))
		<-tick.C
	}
	slices.Sort(all)
	return all[samples/2]
}

// asking makes requests, four at a time, until it is stopped.
func (l *lab) asking(verb, body string) (stop func() int) {
	ctx, cancel := context.WithCancel(l.Context())
	var all sync.WaitGroup
	counts := make([]int, 4)
	for n := range counts {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := l.nc.RequestWithContext(ctx, "oneturn.api.app."+verb, []byte(body)); err == nil {
					counts[n]++
				}
			}
		})
	}
	return func() int {
		cancel()
		all.Wait()
		return counts[0] + counts[1] + counts[2] + counts[3]
	}
}

const slow = 5 * time.Millisecond // a write takes 0.2 ms or so

// TestReaderOfALargeChatSlowsNoOtherTenant shows H24, as those after it do.
func TestReaderOfALargeChatSlowsNoOtherTenant(t *testing.T) { //nolint:tparallel // one worker at a time, with a fresh budget
	t.Parallel()
	server := oneturntest.NewServer(t)
	server.Provision()
	newClientLab(t, server).fill(func(i int) string { return fmt.Sprintf("$KV.ONETURN_TURNS.e.app.c.0-turn%d.0.tool_call", i) })
	for _, r := range [][2]string{ //nolint:paralleltest // see above
		{"questions", `{"chat_id":"c","tool_call_id":"x@00000000/1"}`},
		{"answer", `{"chat_id":"c","tool_call_id":"x@00000000/1","value":1}`},
		{"questions", `{"chat_id":"c"}`},
		{"history", `{"chat_id":"c","from":50000}`},
	} {
		t.Run(r[0]+r[1], func(t *testing.T) {
			l := newLabOn(t, server, oneturn.Config{Tools: []oneturn.Tool{echoTool()}})
			stop := l.asking(r[0], r[1])
			took := l.writes(func(i int) string { return fmt.Sprintf("$KV.ONETURN_TURNS.e.beta.c.%s-%d.0.step", r[0], i) })
			t.Logf("a write takes %s during %d requests", took, stop())
			require.Less(t, took, slow)
		})
	}
}

// TestAnswersToNoQuestionOfALargeChatSlowNoOtherTenant (H24) is of the role that may do nothing but answer.
func TestAnswersToNoQuestionOfALargeChatSlowNoOtherTenant(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	server.Provision()
	newClientLab(t, server).fill(func(i int) string { return fmt.Sprintf("$KV.ONETURN_TURNS.e.app.c.0-turn%d.0.tool_call", i) })
	l := newLabOn(t, server, oneturn.Config{Tools: []oneturn.Tool{echoTool()}})
	for i := range 2000 {
		_, err := l.js.PublishAsync("oneturn.in.default.tool_call_response.app.Echo.c", fmt.Appendf(nil,
			`{"kind":"tool_call_response","tool_call_id":"x%d@00000000/1","response":1,"context":{"app_id":"app","chat_id":"c","workflow_name":"Echo"}}`, i), jetstream.WithStallWait(20*time.Second))
		require.NoError(t, err)
	}
	took := time.Hour
	for n := range 3 { // the answers themselves are work, too, but not all the time
		took = min(took, l.writes(func(i int) string { return fmt.Sprintf("$KV.ONETURN_TURNS.e.beta.c.%d-%d.0.step", n, i) }))
		t.Logf("a write takes %s", took)
	}
	require.Less(t, took, slow)
	beta := turn("c9", "t1")
	beta.App = "beta"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := l.client.Do(ctx, beta)
	require.NoError(t, err)
}

// TestReaderOfATenantWithManyQuestionsSlowsNoOtherTenant (H24) is about timers, which are a separate stream.
func TestReaderOfATenantWithManyQuestionsSlowsNoOtherTenant(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	server.Provision()
	pre := newClientLab(t, server)
	timer := func(app string, i int) string {
		return pre.space.AskTimer(subjects.TurnKey(app, fmt.Sprint("c", i%1000), "", fmt.Sprint("t", i)), "1")
	}
	pre.fill(func(i int) string { return timer("app", i) })
	l := newLabOn(t, server, oneturn.Config{Tools: []oneturn.Tool{echoTool()}})
	stop := l.asking("questions", `{}`)
	took := l.writes(func(i int) string { return timer("beta", i) })
	t.Logf("a write takes %s during %d requests", took, stop())
	require.Less(t, took, slow)
}
