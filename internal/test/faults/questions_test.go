package faults_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// confirm is a tool that asks a question and waits.
func (r *rig) confirm(effect string) oneturn.Tool {
	return oneturn.NewTool("confirm", func(ctx context.Context, _ work) (string, error) {
		call := tool.Info(ctx)
		if err := r.ledger.Enter(call); err != nil {
			return "", err
		}
		answer, err := tool.Ask[string](ctx, tool.Question{Tool: "Confirm"})
		if err != nil {
			return "", err
		}
		return answer, r.ledger.Exit(call)
	}, oneturn.ToolOptions{Workflow: "Ask", Agent: "Agent_" + effect, Model: "Work", Effect: oneturn.Effect(effect)})
}

// F29: 1,500 questions are open, and the consumer lets 1,000 messages be in the hands of workers.
// New turns flow, while the questions are asked and after it; answers are taken. (At what rate is
// for the bench to measure: here other tests take the machine.)
func TestManyOpenQuestionsDoNotStopOtherTurns(t *testing.T) {
	t.Parallel()
	const open, pending, publishers, answered = 1500, 1000, 3, 40
	r := newRig(t)
	js, err := r.js.Consumer(t.Context(), r.space.InStream(), r.space.WorkerConsumer(subjects.DefaultPool))
	require.NoError(t, err)
	config := js.CachedInfo().Config
	config.MaxAckPending = pending
	_, err = r.js.UpdateConsumer(t.Context(), r.space.InStream(), config)
	require.NoError(t, err)
	_, stop := r.start(oneturn.Config{
		Tools: []oneturn.Tool{r.tool("Work", "unsafe"), r.confirm("replay")}, Slots: 8,
		ParkAfter: time.Hour, // it is the number of those who wait that has turns parked
	})
	l := r.load(100)
	r.goesOn(l, 100)
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for n := p; n < open; n += publishers {
				asks := turn("Ask", "chat-"+strconv.Itoa(n%50), "q-"+strconv.Itoa(n), "replay", 0)
				if _, err := r.client.Publish(t.Context(), asks); err != nil {
					t.Errorf("publish: %v", err)
					return
				}
				r.accept(asks, false)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return r.stored(events.RecordAsk+".*") == open }, 60*time.Second, 50*time.Millisecond, "not every question is asked")
	r.goesOn(l, 100)
	for n := range answered {
		verdict, err := r.client.Answer(t.Context(), &oneturn.Answer{
			QuestionID: oneturn.QuestionID{App: "app", Chat: "chat-" + strconv.Itoa(n%50), ToolCallID: events.QuestionID("q-"+strconv.Itoa(n), "1")},
			Workflow:   "Ask", Value: "yes",
		})
		require.NoError(t, err)
		require.Equal(t, events.AnswerAccepted, verdict.Code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.Zero(t, l.Stop(ctx))
	for n := range answered {
		r.await(oneturn.TurnID{App: "app", Chat: "chat-" + strconv.Itoa(n%50), Turn: "q-" + strconv.Itoa(n)})
	}
	stop() // a turn that waits in memory is parked
	r.accepted = append(r.accepted, l.Accepted()...)
	for i := range r.accepted {
		r.accepted[i].MayWait = r.accepted[i].Chat != "bystander"
	}
	r.settle(nil)
}

// stored counts the public records of a kind.
func (r *rig) stored(kind string) int {
	r.Helper()
	s, err := r.js.Stream(r.Context(), r.space.TurnsStream())
	require.NoError(r, err)
	info, err := s.Info(r.Context(), jetstream.WithSubjectFilter(r.space.JournalSubject("e.*.*.*.*."+kind)))
	require.NoError(r, err)
	return len(info.State.Subjects)
}
