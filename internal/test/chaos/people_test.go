//go:build chaos || soak

package chaos_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// parkAfter is how long a turn waits in memory: half of the answers come later.
const parkAfter = 300 * time.Millisecond

// asks is the end of the key of a turn whose tool asks.
const asks = "-asks"

// person answers every question, through all faults: it reads them from the journal, as a frontend
// does that was away, and sends its answer until it is decided.
type person struct {
	r    *rig
	stop context.CancelFunc
	read jetstream.ConsumeContext
	wg   sync.WaitGroup

	mu      sync.Mutex
	answers []oneturntest.SentAnswer
	open    int
}

// startPerson begins to read. Without questions there is no person.
func (r *rig) startPerson() *person {
	r.Helper()
	p := &person{r: r}
	ctx, stop := context.WithCancel(r.Context())
	p.stop = stop
	questions, err := r.js.OrderedConsumer(r.Context(), r.space.TurnsStream(), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{r.space.JournalSubject("e.*.*.*.*." + events.RecordAsk + ".*")},
	})
	require.NoError(r.T, err)
	p.read, err = questions.Consume(func(m jetstream.Msg) {
		body, err := events.Parse(m.Data())
		var q events.ToolCall
		if err == nil {
			err = body.As(&q)
		}
		if err != nil || q.Answer == nil {
			r.Errorf("a question that cannot be read: %v", err)
			return
		}
		p.mu.Lock()
		p.open++
		pauses := r.jitter(2 * parkAfter)
		p.mu.Unlock()
		p.wg.Go(func() { p.answer(ctx, &q, pauses) })
	}, jetstream.ConsumeErrHandler(func(jetstream.ConsumeContext, error) {})) // it continues after each
	require.NoError(r.T, err)
	r.Cleanup(p.end)
	return p
}

// answer sends yes after a while, and again until that is decided on.
func (p *person) answer(ctx context.Context, q *events.ToolCall, pauses time.Duration) {
	w := api.Question{App: q.AppID, Chat: q.ChatID, Run: q.RunID, Turn: q.Turn, ToolCallID: q.ToolCallID}
	act := oneturntest.Act{Value: "yes, " + q.Turn}
	sleep(ctx, pauses)
	for {
		answered, err := p.r.client.Answer(ctx, &oneturn.Answer{
			QuestionID: oneturn.QuestionID{App: q.AppID, Chat: q.ChatID, Run: q.RunID, ToolCallID: q.ToolCallID},
			Workflow:   q.WorkflowName, Subject: q.Answer.Subject, Value: act.Value,
		})
		if err == nil || ctx.Err() != nil {
			var result events.AnswerResult
			if err == nil {
				result = *answered
			}
			p.mu.Lock()
			p.open--
			p.answers = append(p.answers, oneturntest.SentAnswer{Question: w, Act: act, Result: result, Err: err})
			p.mu.Unlock()
			return
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// end stops to read and to report.
func (p *person) end() {
	p.read.Stop()
	p.stop()
	p.wg.Wait()
}

// take returns the answers since it was called last.
func (p *person) take() []oneturntest.SentAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers := p.answers
	p.answers = nil
	return answers
}

// answered waits until all turns that ask have ended, or the checker has something to report.
func (r *rig) answered() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	for _, a := range r.load.Accepted() {
		if !a.MayFail && strings.HasSuffix(a.Turn, asks) {
			if _, err := r.client.Await(ctx, oneturn.TurnID{App: a.App, Chat: a.Chat, Turn: a.Turn}); err != nil {
				r.Logf("turn %s has no end: %v", a.Turn, err)
				return
			}
		}
	}
}

// asksAPerson reports whether the nth turn of the load asks a question.
func (r *rig) asksAPerson(n int) bool { return r.setup.asks > 0 && n%r.setup.asks == r.setup.asks-1 }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
