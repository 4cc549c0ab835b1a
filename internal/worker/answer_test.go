package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

type approvalRequest struct {
	Within int `json:"within"` // milliseconds, 0 for no end
}

type granted struct {
	Text string `json:"text"`
}

// approver is a worker whose tool asks one question, and parks soon.
func approver(c oneturn.Config) (oneturn.Config, *atomic.Int64) {
	entered := &atomic.Int64{}
	grant := func(ctx context.Context, in approvalRequest) (granted, error) {
		entered.Add(1)
		answer, err := tool.Ask[string](ctx, tool.Question{
			Component: "Grant", Payload: map[string]any{"text": "may I?"}, Timeout: time.Duration(in.Within) * time.Millisecond,
		})
		return granted{answer}, err
	}
	c.Tools = []oneturn.Tool{oneturn.NewTool("grant", grant, oneturn.ToolOptions{Workflow: "Approvals", Agent: "Asker", Model: "Approval", Effect: oneturn.Replay})}
	if c.ParkAfter == 0 {
		c.ParkAfter = time.Millisecond
	}
	return c, entered
}

func approval(within time.Duration) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "acme", Chat: "chat", Turn: "t1"}, Workflow: "Approvals", Agent: "Asker", Model: "Approval",
		Data: map[string]any{"within": json.Number(strconv.FormatInt(within.Milliseconds(), 10))},
	}
}

// parkedRuns waits for the event that a run is parked, n times.
func parkedRuns(t *testing.T, nc *nats.Conn) (wait func(n int)) {
	t.Helper()
	sub, err := nc.SubscribeSync("oneturn.live.acme.*." + events.KindRunComplete)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func(n int) {
		for range n {
			_, err := sub.NextMsg(20 * time.Second)
			require.NoError(t, err)
		}
	}
}

func do(t *testing.T, c *oneturn.Client, turn *oneturn.Turn) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := c.Do(ctx, turn)
	require.NoError(t, err)
	return r
}

func TestAnswerGoesToAParkedTurnOnWhateverWorker(t *testing.T) {
	t.Parallel()
	s := server(t)
	wait := parkedRuns(t, s.Connect())
	config, entered := approver(oneturn.Config{})
	start(t, s, config)
	c := client(t, s)
	publish(t, c, approval(0))
	wait(1)
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "t1/1"}, Value: "yes", Workflow: "Approvals"})
	require.NoError(t, err)
	require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
	r := do(t, c, approval(0))
	require.True(t, r.Success, r.Content)
	require.Equal(t, int64(2), entered.Load())
	v, err = c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "t1/1"}, Value: "no", Workflow: "Approvals"})
	require.NoError(t, err)
	require.Equal(t, events.AnswerConflict, v.Code)
	requireDrained(t, s)
}

func TestParkedTurnExpiresAlsoOnWorkersThatSweepNothing(t *testing.T) {
	t.Parallel()
	s := server(t)
	config, _ := approver(oneturn.Config{NoSweeps: true})
	start(t, s, config)
	r := do(t, client(t, s), approval(50*time.Millisecond))
	require.False(t, r.Success)
	require.Equal(t, events.CodeExpired, r.Code, r.Content)
	requireDrained(t, s)
}

func TestCancelOfATurnThatWaitsForAPersonEndsItParkedOrNot(t *testing.T) {
	t.Parallel()
	for name, park := range map[string]time.Duration{"parked": time.Millisecond, "in memory": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			nc := s.Connect()
			wait := parkedRuns(t, nc)
			asked, err := nc.SubscribeSync("oneturn.events.acme.chat.*.*.ask.*")
			require.NoError(t, err)
			acks, err := nc.SubscribeSync("oneturn.events.acme.chat.*.*.ack.*")
			require.NoError(t, err)
			config, entered := approver(oneturn.Config{ParkAfter: park})
			start(t, s, config)
			c := client(t, s)
			publish(t, c, approval(0))
			_, err = asked.NextMsg(20 * time.Second)
			require.NoError(t, err)
			if park < time.Second {
				wait(1)
			}
			_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: approval(0).TurnID, Workflow: "Approvals"})
			require.NoError(t, err)
			r := do(t, c, approval(0))
			require.Equal(t, events.CodeCancelled, r.Code)
			require.Contains(t, r.Content, map[bool]string{true: "waited for a person", false: "while tool grant ran"}[park < time.Second])
			m, err := acks.NextMsg(20 * time.Second)
			require.NoError(t, err)
			require.Contains(t, string(m.Data), `"status":"cancelled"`)
			require.Equal(t, int64(1), entered.Load())
			requireDrained(t, s)
		})
	}
}

// F28: no worker reaches the server when the answer is sent. It waits, and the same answer again
// is not a second one.
func TestAnswerWhileNoWorkerReachesTheServerIsDecidedWhenOneDoesF28(t *testing.T) {
	t.Parallel()
	s := server(t)
	wait := parkedRuns(t, s.Connect())
	config, _ := approver(oneturn.Config{})
	proxy := harness.NewProxy(t, strings.TrimPrefix(s.URL(), "nats://"))
	nc, err := nats.Connect(proxy.URL(), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	w, err := oneturn.NewWorker(nc, config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		nc.Close()
	})
	c := client(t, s)
	publish(t, c, approval(0))
	wait(1)
	proxy.Refuse(true)
	proxy.Cut()
	answer := func(wait time.Duration) (*events.AnswerResult, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		return c.Answer(ctx, &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "t1/1"}, Value: "yes", Workflow: "Approvals"})
	}
	_, err = answer(50 * time.Millisecond)
	require.ErrorIs(t, err, oneturn.ErrUndecided)
	proxy.Heal()
	v, err := answer(20 * time.Second)
	require.NoError(t, err)
	require.True(t, v.OK(), v.Message)
	require.True(t, do(t, c, approval(0)).Success)
	requireDrained(t, s)
}

// TestManyQuestionsThatExpireInOneSecondPassTogether measures how fast ends of questions go from
// their schedules to the workers' queue.
func TestManyQuestionsThatExpireInOneSecondPassTogether(t *testing.T) {
	t.Parallel()
	const questions = 10_000
	s := server(t)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	at := time.Now().Add(3 * time.Second)
	schedule, began := timers.ScheduleExpiry(js, space), time.Now()
	require.NoError(t, each(64, questions, func(i int) error {
		turn := fmt.Sprintf("t%d", i)
		key := subjects.TurnKey("acme", "chat", "", turn)
		return schedule(t.Context(), &events.Expire{
			TurnID: events.TurnID{App: "acme", Chat: "chat", Turn: turn}, Workflow: "Approvals", Key: key.String(), Ask: "1", Pool: "elsewhere", ExpiresAt: at,
		})
	}))
	scheduling := time.Since(began) // as many writes, by clients: what this machine can do now
	config, _ := approver(oneturn.Config{NoSweeps: true})
	start(t, s, config)
	in, err := js.Stream(t.Context(), space.InStream())
	require.NoError(t, err)
	var first, last time.Time
	require.Eventually(t, func() bool {
		info, err := in.Info(t.Context())
		if err != nil || info.State.Msgs < questions {
			return false
		}
		require.EqualValues(t, questions, info.State.Msgs)
		first, last = info.State.FirstTime, info.State.LastTime
		return true
	}, 60*time.Second, 20*time.Millisecond)
	took := last.Sub(first)
	t.Logf("%d expiries in %s, scheduled in %s", questions, took, scheduling)
	require.Less(t, took, max(questions*time.Millisecond, 5*scheduling), "fewer than 1,000 a second")
}

// each calls f with 0 to n-1, some at a time.
func each(workers, n int, f func(i int) error) error {
	next, failed := &atomic.Int64{}, make(chan error, workers)
	for range workers {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					failed <- nil
					return
				}
				if err := f(i); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	var first error
	for range workers {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	return first
}
