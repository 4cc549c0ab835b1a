package oneturn_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestRequestsWithoutAWorkerNameTheWorkerToStart(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	id := oneturn.QuestionID{Chat: "c", ToolCallID: "t/1"}
	for want, request := range map[string]func(context.Context) error{
		`question "t/1" of chat "c": no worker answers on oneturn.api.default.questions: start one with: worker --workflows DIR --nats `: func(ctx context.Context) error {
			_, err := c.Question(ctx, id)
			return err
		},
		`list questions: no worker answers on oneturn.api.default.questions: start one with: `: func(ctx context.Context) error {
			_, err := c.Questions(ctx, oneturn.QuestionFilter{})
			return err
		},
		`answer "t/1" of chat "c": no worker answers on oneturn.api.default.questions: start one with: `: func(ctx context.Context) error {
			_, err := c.Answer(ctx, &oneturn.Answer{QuestionID: id, Value: true})
			return err
		},
		`no worker answers on oneturn.api.default.blob: start one with: `: func(ctx context.Context) error {
			_, err := c.Blob(ctx, oneturn.BlobID{})
			return err
		},
		`await turn "t" of chat "c": context deadline exceeded: no worker answers on oneturn.api.default.turn: start one with: `: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			_, err := c.Await(ctx, oneturn.TurnID{Chat: "c", Turn: "t"})
			return err
		},
	} {
		err := request(t.Context())
		require.ErrorIs(t, err, oneturn.ErrNoWorker, want)
		require.ErrorIs(t, err, nats.ErrNoResponders, want)
		require.ErrorContains(t, err, want)
	}
}

func TestWaitForATurnThatNoWorkerClaimsNamesWhatToCheck(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	warm := turn("warm", map[string]any{"name": "Ada"})
	publish(t, c, warm)
	await(t, c, warm.TurnID)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := c.Await(ctx, oneturn.TurnID{Chat: "c", Turn: "t"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `await turn "t" of chat "c": `)
	require.ErrorContains(t, err, "no worker has claimed the turn: check that it was published, that pool default has workers (turnctl doctor)")
}

func TestTurnWithoutIDsIsRefusedWithTheFieldToSet(t *testing.T) {
	t.Parallel()
	c := client(t, server(t))
	_, err := c.Publish(t.Context(), &oneturn.Turn{TurnID: oneturn.TurnID{Turn: "t"}})
	require.ErrorContains(t, err, "set TurnID.Chat")
	_, err = c.Publish(t.Context(), &oneturn.Turn{TurnID: oneturn.TurnID{Chat: "c"}})
	require.ErrorContains(t, err, "set TurnID.Turn")
	_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{Turn: "t"}, ToolCallID: "t/1"})
	require.ErrorContains(t, err, "set TurnID.Chat")
	_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{Chat: "c"}})
	require.ErrorContains(t, err, "set TurnID.Turn")
	_, err = c.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{Chat: "c"}, ToolCallID: "t/1"})
	require.NoError(t, err)
	_, err = c.Await(t.Context(), oneturn.TurnID{Chat: "c"})
	require.ErrorContains(t, err, "set TurnID.Turn")
}

func TestQuestionWithoutIDsIsRefusedWithTheFieldToSet(t *testing.T) {
	t.Parallel()
	c := client(t, server(t))
	for want, id := range map[string]oneturn.QuestionID{"set QuestionID.Chat": {ToolCallID: "t/1"}, "set QuestionID.ToolCallID": {Chat: "c"}} {
		_, err := c.Question(t.Context(), id)
		require.ErrorContains(t, err, want)
		_, err = c.Answer(t.Context(), &oneturn.Answer{QuestionID: id, Value: true, Workflow: "W"})
		require.ErrorContains(t, err, want)
	}
}

func TestErrorsOfToolsNameTheGoOptionToSet(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	tools := func(name string, o oneturn.ToolOptions) []oneturn.Tool {
		return []oneturn.Tool{oneturn.NewTool(name, func(context.Context, greeting) (string, error) { return "", nil }, o)}
	}
	bound := oneturn.ToolOptions{Workflow: "W", Agent: "A"}
	with := func(change func(*oneturn.ToolOptions)) []oneturn.Tool {
		o := bound
		change(&o)
		return tools("f", o)
	}
	for want, c := range map[string]oneturn.Config{
		"set Config.Workflows to a folder of workflows, or Config.Tools":         {},
		"no such file or directory: create it, or name an existing folder":       {Workflows: "testdata/none"},
		"a tool in Config.Tools has no name":                                     {Tools: tools("", bound)},
		`two tools in Config.Tools are named "f"`:                                {Tools: append(tools("f", bound), tools("f", bound)...)},
		`oneturn.NewTool("f"): the tool is bound to nothing: set ToolOptions.Wo`: {Tools: tools("f", oneturn.ToolOptions{})},
		`oneturn.NewTool("f"): set ToolOptions.Agent`:                            {Tools: tools("f", oneturn.ToolOptions{Workflow: "W"})},
		`oneturn.NewTool("f"): set ToolOptions.Workflow, or`:                     {Tools: tools("f", oneturn.ToolOptions{Agent: "A"})},
		"set ToolOptions.Effect to oneturn.ReadOnly":                             {Tools: with(func(o *oneturn.ToolOptions) { o.CacheFor = time.Minute })},
		"use oneturn.Unsafe, Replay, Keyed, Idempotent or ReadOnly":              {Tools: with(func(o *oneturn.ToolOptions) { o.Effect = "harmless" })},
		"invalid ToolOptions.Limits.Tool.Concurrency -1: use 0":                  {Tools: with(func(o *oneturn.ToolOptions) { o.Limits.Tool.Concurrency = -1 })},
		"invalid ToolOptions.Limits.Output -1: use 0":                            {Tools: with(func(o *oneturn.ToolOptions) { o.Limits.Output = -1 })},
		"ToolOptions.Limits.Tenant.Rate: invalid rate: 5 calls in 0s":            {Tools: with(func(o *oneturn.ToolOptions) { o.Limits.Tenant.Rate.Calls = 5 })},
		`oneturn worker: oneturn.NewTool("f"): error: model f cannot be used`:    {Tools: with(func(o *oneturn.ToolOptions) { o.Schema = json.RawMessage("{") })},
	} {
		_, err := oneturn.NewWorker(nc, c)
		require.ErrorContains(t, err, want)
	}
}
