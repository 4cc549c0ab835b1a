package oneturntest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/tool"
)

type order struct {
	Item string `json:"item"`
}

type approval struct {
	Status string `json:"status"`
}

// approve asks for an approval, and a key for what is approved.
func approve(ctx context.Context, in order) (string, error) {
	answer, err := tool.Ask[approval](ctx, tool.Question{Tool: "approve_order", Component: "Approval", Payload: in})
	if err != nil || answer.Status != "approved" {
		return answer.Status, err
	}
	key, err := tool.Ask[string](ctx, tool.Question{Tool: "get_key", Component: "KeyForm"})
	return answer.Status + " with " + key, err
}

func approver() oneturn.Config {
	return oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("approve", approve, oneturn.ToolOptions{Workflow: "Shop", Agent: "Clerk", Model: "Order", Effect: oneturn.Replay}),
	}}
}

func ordered(turn string) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: turn}, Workflow: "Shop", Agent: "Clerk", Model: "Order", UserID: "ada",
		Data: map[string]any{"item": turn},
	}
}

// shop is a server with a worker whose tool asks, and a person who answers.
type shop struct {
	*testing.T
	nc     *nats.Conn
	client *oneturn.Client
	human  *oneturntest.Human
	ctx    context.Context //nolint:containedctx // the time that a test has
}

func newShop(t *testing.T, rules ...oneturntest.Rule) *shop {
	t.Helper()
	server := oneturntest.NewServer(t)
	server.Provision()
	w, err := oneturn.NewWorker(server.Connect(), approver())
	require.NoError(t, err)
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(running) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	s := &shop{T: t, nc: server.Connect()}
	var end context.CancelFunc
	s.ctx, end = context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(end)
	s.client, err = oneturn.NewClient(s.nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	s.human, err = oneturntest.StartHuman(s.ctx, s.nc, oneturntest.HumanOptions{App: "app", Rules: rules})
	require.NoError(t, err)
	t.Cleanup(s.human.Stop)
	return s
}

func (s *shop) do(turn string) *oneturn.Response {
	s.Helper()
	r, err := s.client.Do(s.ctx, ordered(turn))
	require.NoError(s, err)
	return r
}

// answers waits for n acts and returns the codes of their verdicts.
func (s *shop) answers(n int) (codes []events.AnswerCode) {
	s.Helper()
	answers, err := s.human.AwaitAnswers(s.ctx, n)
	require.NoError(s, err)
	for _, one := range answers {
		require.NoError(s, one.Err)
		codes = append(codes, one.Result.Code)
	}
	return codes
}

var approved = map[string]any{"status": "approved"}

func TestHumanAnswersByToolAndByComponent(t *testing.T) {
	t.Parallel()
	s := newShop(t,
		oneturntest.Rule{Tool: "approve_order", Acts: []oneturntest.Act{{Value: approved}}},
		oneturntest.Rule{Component: "KeyForm", Acts: []oneturntest.Act{{From: func(q api.Question) any { return "key of " + q.Turn }}}},
	)
	r := s.do("t1")
	require.Equal(t, "approved with key of t1", r.Payload)
	require.Contains(t, string(s.human.Questions()[0].Payload), `"item":"t1"`, "what is shown, though all chats are read")
	require.Equal(t, []events.AnswerCode{events.AnswerAccepted, events.AnswerAccepted}, s.answers(2))
	questions := s.human.Questions()
	require.Equal(t, []string{"t1/1", "t1/2"}, []string{questions[0].ToolCallID, questions[1].ToolCallID})
	require.Equal(t, "ada", questions[0].User)
}

func TestHumanAnswersWronglyThenRightlyThenAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t,
		oneturntest.Rule{Ask: "1", Acts: []oneturntest.Act{
			{Value: map[string]any{"status": 7}}, {Value: approved, User: "eve"}, {Value: approved}, {Value: approved}, {Value: map[string]any{"status": "rejected"}},
		}},
		oneturntest.Rule{Ask: "2", Acts: []oneturntest.Act{{Value: "k"}}},
	)
	require.Equal(t, "approved with k", s.do("t1").Payload)
	s.answers(6)
	var first []events.AnswerCode
	for _, one := range s.human.Answers() {
		if one.Question.ToolCallID == "t1/1" {
			first = append(first, one.Result.Code)
		}
	}
	require.Equal(t, []events.AnswerCode{
		events.AnswerInvalid, events.AnswerForbidden, events.AnswerAccepted, events.AnswerReplayed, events.AnswerConflict,
	}, first)
}

func TestHumanMayCancelOrNotAnswer(t *testing.T) {
	t.Parallel()
	s := newShop(t,
		oneturntest.Rule{Tool: "approve_order", Acts: []oneturntest.Act{{Value: approved}}},
		oneturntest.Rule{Tool: "get_key", Acts: []oneturntest.Act{{Cancel: true}}},
	)
	require.Equal(t, events.CodeCancelled, s.do("t1").Code)

	silent := newShop(t, oneturntest.Rule{Tool: "approve_order"}, oneturntest.Rule{Acts: []oneturntest.Act{{Value: approved}}})
	_, err := silent.client.Publish(t.Context(), ordered("t1"))
	require.NoError(t, err)
	questions, err := silent.human.AwaitQuestions(silent.ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "t1/1", questions[0].ToolCallID)
	silent.human.Stop()
	require.Empty(t, silent.human.Answers(), "the first rule that fits is the one")
}

func TestHumanWaitsUntilItHasReadSoManyQuestions(t *testing.T) {
	t.Parallel()
	s := newShop(t, oneturntest.Rule{Acts: []oneturntest.Act{{Value: map[string]any{"status": "rejected"}, After: 3}}})
	for _, turn := range []string{"t1", "t2"} {
		_, err := s.client.Publish(t.Context(), ordered(turn))
		require.NoError(t, err)
	}
	_, err := s.human.AwaitQuestions(s.ctx, 2)
	require.NoError(t, err)
	require.Empty(t, s.human.Answers())
	require.Equal(t, "rejected", s.do("t3").Payload)
	s.answers(3)
}

func TestHumanReportsWhatIsWrongWithAnAct(t *testing.T) {
	t.Parallel()
	s := newShop(t, oneturntest.Rule{Acts: []oneturntest.Act{{Value: make(chan int)}, {Value: approved}}})
	_, err := s.client.Publish(t.Context(), ordered("t1"))
	require.NoError(t, err)
	answers, err := s.human.AwaitAnswers(s.ctx, 1)
	require.NoError(t, err)
	require.ErrorContains(t, answers[0].Err, "no JSON form")
	s.human.Stop()
	require.Len(t, s.human.Answers(), 1, "later acts are not done")
}

// A person who approves everything answers the questions of a tool while a turn runs.
func ExampleStartHuman() {
	err := withWorker(func(ctx context.Context, nc *nats.Conn) error {
		human, err := oneturntest.StartHuman(ctx, nc, oneturntest.HumanOptions{App: "app", Rules: []oneturntest.Rule{
			{Tool: "approve_order", Acts: []oneturntest.Act{{Value: map[string]any{"status": 7}}, {Value: map[string]any{"status": "approved"}}}},
			{Component: "KeyForm", Acts: []oneturntest.Act{{Value: "s3cret"}}},
		}})
		if err != nil {
			return err
		}
		defer human.Stop()
		client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
		if err != nil {
			return err
		}
		response, err := client.Do(ctx, ordered("turn-1"))
		if err != nil {
			return err
		}
		acts, err := human.AwaitAnswers(ctx, 3)
		for _, sent := range acts {
			if sent.Question.Tool == "approve_order" {
				fmt.Println(sent.Question.ToolCallID, sent.Result.Status, sent.Result.Code)
			}
		}
		fmt.Println(response.Payload)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// turn-1/1 422 invalid
	// turn-1/1 200 accepted
	// approved with s3cret
}

// withWorker runs a worker on a separate server meanwhile.
func withWorker(do func(context.Context, *nats.Conn) error) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := os.MkdirTemp("", "oneturn-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	nc, err := server.Conn()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	plan, err := provision.New(provision.Options{})
	if err != nil {
		return err
	}
	if _, err := provision.Apply(ctx, js, plan); err != nil {
		return err
	}
	worker, err := oneturn.NewWorker(nc, approver())
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-done) }()
	return do(ctx, nc)
}
