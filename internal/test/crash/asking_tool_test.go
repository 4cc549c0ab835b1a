//go:build failpoints

package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// afterLastAnswer is the point of a tool after its last answer.
const afterLastAnswer = "after_last_answer"

type questions struct {
	Millis    int `json:"millis"`    // takes so long after the last answer
	Questions int `json:"questions"` // one after the other
	Within    int `json:"within"`    // milliseconds to answer; 0: as long as the turn lives
}

// decision is what the tool gets.
type decision struct {
	Yes bool   `json:"yes"`
	By  string `json:"by"`
}

// ask is the tool: a step, something to look at, and some questions, each with its lines in the
// ledger.
func ask(ledger *oneturntest.Ledger, effect string) func(context.Context, questions) (string, error) {
	return func(ctx context.Context, in questions) (string, error) {
		call := tool.Info(ctx)
		if err := ledger.Enter(call); err != nil {
			return "", err
		}
		if _, err := tool.Step(ctx, "reserve", func(context.Context) (int, error) { return 1, ledger.Step(call, "reserve") }); err != nil {
			return "", err
		}
		if _, err := tool.Show(ctx, tool.Surface{Tool: "Plan"}); err != nil {
			return "", err
		}
		for n := range in.Questions {
			id := strconv.Itoa(n + 1)
			if err := ledger.Ask(call, id); err != nil {
				return "", err
			}
			_, err := tool.Ask[decision](ctx, tool.Question{
				Tool: "Confirm", Payload: map[string]any{"number": n + 1, "at": time.Now()}, Timeout: time.Duration(in.Within) * time.Millisecond,
			})
			if err != nil && !errors.Is(err, tool.ErrExpired) {
				return "", err
			}
			if err := ledger.Answered(call, id); err != nil {
				return "", err
			}
		}
		failpoint.Hit(afterLastAnswer, effect, subjects.TurnKey(call.App, call.Chat, call.Run, call.Turn).String())
		select {
		case <-time.After(time.Duration(in.Millis) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return "done", ledger.Exit(call)
	}
}

// asking is what a rig has whose tools ask, and the person who answers them.
type asking struct {
	questions int
	within    time.Duration
	mayFail   bool // turns end otherwise than with a result
	human     *oneturntest.Human
	responses int // that were stored at the last reading
}

func (a *asking) data(millis int) map[string]any {
	return map[string]any{
		"millis": json.Number(strconv.Itoa(millis)), "questions": json.Number(strconv.Itoa(a.questions)),
		"within": json.Number(strconv.FormatInt(a.within.Milliseconds(), 10)),
	}
}

// answered is how many turns have ended. While there is no server, it is what it was.
func (r *rig) answered() int {
	ended := jetstream.WithSubjectFilter(r.space.JournalSubject("e.*.*.*." + subjects.SingleCall + "." + events.KindToolResponse))
	s, err := r.js.Stream(r.t.Context(), r.space.TurnsStream())
	if err != nil {
		return r.asks.responses
	}
	if info, err := s.Info(r.t.Context(), ended); err == nil {
		r.asks.responses = len(info.State.Subjects)
	}
	return r.asks.responses
}

// quiet ends the person and returns the answers.
func (a *asking) quiet() []oneturntest.SentAnswer {
	a.human.Stop()
	return a.human.Answers()
}

// yes is an answer after a while, from when its question was read.
func yes(after time.Duration) oneturntest.Act {
	return answerWith(decision{Yes: true, By: "Ada"}, after)
}

func answerWith(value any, after time.Duration) oneturntest.Act {
	return oneturntest.Act{Value: value, When: func(ctx context.Context) { pause(ctx, after) }}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// newAsking is a rig whose tools ask so many questions, wait in memory for a while, and are
// answered by what a person does.
func newAsking(t *testing.T, questions int, park time.Duration, acts ...oneturntest.Act) *rig {
	t.Helper()
	return newRig(t).answeredBy(questions, park, oneturntest.Rule{Acts: acts})
}

func (r *rig) answeredBy(questions int, park time.Duration, rules ...oneturntest.Rule) *rig {
	r.t.Helper()
	r.park, r.asks = park, &asking{questions: questions}
	var err error
	r.asks.human, err = oneturntest.StartHuman(r.t.Context(), r.server.Connect(), oneturntest.HumanOptions{App: "app", Rules: rules})
	require.NoError(r.t, err)
	r.t.Cleanup(r.asks.human.Stop)
	return r
}

// embeddedOr runs a worker, with an embedded server if it has a store for one.
func embeddedOr(run func(url string) error, url string) error {
	store := os.Getenv(envStore)
	if store == "" {
		return run(url)
	}
	s, err := embedded.Start(context.Background(), embedded.Options{Listen: os.Getenv(envListen), Store: store})
	if err != nil {
		return err
	}
	return errors.Join(run(s.URL()), s.Stop())
}

// noHurry is a lease that outlasts whatever a test does meanwhile.
func noHurry(o *provision.Options) { o.AckWait = 30 * time.Second }
