package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/tool"
)

// F28: see docs/faults.md. The turn is in another pool than the one that answers the request.
func TestAnswerThatIsFasterThanItsQuestionCountsByEveryWayInF28(t *testing.T) {
	t.Parallel()
	request := oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "t1/1"}, Value: "yes"}
	for name, answer := range map[string]func(nc *nats.Conn, c *oneturn.Client) (*events.AnswerResult, error){
		"client": func(_ *nats.Conn, c *oneturn.Client) (*events.AnswerResult, error) {
			return c.Answer(context.Background(), &request)
		},
		"request API": func(nc *nats.Conn, _ *oneturn.Client) (*events.AnswerResult, error) {
			body, err := json.Marshal(api.AnswerRequest{Chat: request.Chat, ToolCallID: request.ToolCallID, Value: json.RawMessage(`"yes"`)})
			if err != nil {
				return nil, err
			}
			reply, err := nc.Request("oneturn.api.acme.answer", body, 10*time.Second)
			if err != nil {
				return nil, err
			}
			var v events.AnswerResult
			return &v, json.Unmarshal(reply.Data, &v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oneturntest.NewServer(t)
			s.Provision(func(o *provision.Options) { o.Pools = []string{"default", "gpu"} })
			entered, ask := make(chan struct{}, 8), make(chan struct{})
			slow := func(ctx context.Context, _ approvalRequest) (granted, error) {
				entered <- struct{}{}
				select {
				case <-ask:
				case <-ctx.Done():
					return granted{}, ctx.Err()
				}
				text, err := tool.Ask[string](ctx, tool.Question{Component: "Grant", Payload: map[string]any{"text": "may I?"}})
				return granted{text}, err
			}
			start(t, s, oneturn.Config{Pool: "gpu", Tools: []oneturn.Tool{
				oneturn.NewTool("grant", slow, oneturn.ToolOptions{Workflow: "Approvals", Agent: "Asker", Model: "Approval", Effect: oneturn.Replay}),
			}})
			nc := s.Connect()
			publisher, err := oneturn.NewClient(nc, oneturn.ClientOptions{Pool: "gpu"})
			require.NoError(t, err)
			publish(t, publisher, approval(0))
			<-entered

			results := make(chan *events.AnswerResult, 1)
			failures := make(chan error, 1)
			asker := client(t, s)
			go func() {
				v, err := answer(nc, asker)
				failures <- err
				results <- v
			}()
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				stream, err := js.Stream(t.Context(), "ONETURN_IN")
				if err != nil {
					return false
				}
				_, err = stream.GetLastMsgForSubject(t.Context(), "oneturn.in.gpu.tool_call_response.acme.Approvals.chat")
				return err == nil
			}, 10*time.Second, 5*time.Millisecond, "the answer waits in the stream")
			close(ask)
			require.NoError(t, <-failures)
			v := <-results
			require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
			r := await(t, publisher, approval(0).TurnID)
			require.True(t, r.Success, r.Content)
		})
	}
}

func TestClientLooksAgainForAQuestionWhoseTurnIsNotClaimedYet(t *testing.T) {
	t.Parallel()
	s := server(t)
	config, _ := approver(oneturn.Config{})
	w := start(t, s, config)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	looks, err := s.Connect().SubscribeSync("oneturn.api.acme.questions")
	require.NoError(t, err)
	require.NoError(t, looks.SetPendingLimits(-1, -1))
	c := client(t, s)
	results := make(chan *events.AnswerResult, 1)
	failures := make(chan error, 1)
	go func() {
		v, err := c.Answer(context.Background(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "t1/1"}, Value: "yes"})
		failures <- err
		results <- v
	}()
	_, err = looks.NextMsg(10 * time.Second)
	require.NoError(t, err)
	publish(t, c, approval(0))
	require.NoError(t, <-failures)
	v := <-results
	require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
}

func TestAnswerToAnUnknownTurnIsUnknown(t *testing.T) {
	t.Parallel()
	s := server(t)
	config, _ := approver(oneturn.Config{})
	w := start(t, s, config)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	v, err := client(t, s).Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "acme", Chat: "chat", ToolCallID: "none/1"}, Value: "yes"})
	require.NoError(t, err)
	require.Equal(t, events.AnswerUnknown, v.Code)
	require.Contains(t, v.Message, "no running turn that could ask it")
}
