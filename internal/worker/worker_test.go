package worker_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/tool"
)

func TestTurnRunsItsGoToolAndEndsInItsResponse(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one, one, one)
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	require.Empty(t, r.Code)
	require.Equal(t, "Hello, Ada!", r.Content)
	require.Equal(t, "greet", r.Tool)
	e := responseEvent(t, s, one.TurnID)
	require.Equal(t, []string{"t1", "t1", "t1"}, []string{r.ToolCallID, e.CallID, e.Corr})
	require.Equal(t, map[string]any{"status": "success", "message": "Hello, Ada!"}, r.Payload)
}

func TestDataThatDoesNotFitIsAnsweredWithFeedbackForTheModel(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	bad := turn("t1", map[string]any{"nam": "SECRET"})
	publish(t, c, bad)
	r := await(t, c, bad.TurnID)
	require.False(t, r.Success)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	payload := object(t, r.Payload)
	require.Contains(t, payload["feedback"], "name")
	require.NotContains(t, payload["feedback"], "SECRET")
	require.Len(t, payload["errors"], 1)
}

func TestEqualKeysOfOtherTenantsChatsAndRunsAreOtherTurns(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	ids := []oneturn.TurnID{
		{App: "a", Chat: "c", Turn: "t"},
		{App: "b", Chat: "c", Turn: "t"},
		{App: "a", Chat: "d", Turn: "t"},
		{App: "a", Chat: "c", Run: "r1", Turn: "t"},
		{App: "a", Chat: "c", Run: "r2", Turn: "t"},
	}
	calls := map[string]bool{}
	for _, id := range ids {
		one := turn("", map[string]any{"name": "x"})
		one.TurnID = id
		publish(t, c, one)
		r := await(t, c, id)
		require.True(t, r.Success)
		require.Equal(t, []string{id.App, id.Chat, id.Run}, []string{r.App, r.Chat, r.Run})
		calls[id.App+id.Chat+responseEvent(t, s, id).CallID] = true
	}
	require.Len(t, calls, len(ids))
}

// F21: see docs/faults.md.
func TestOldEventsAreAnsweredAndNotRun(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.MaxEventAge = time.Nanosecond
	start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.Equal(t, events.CodeTooOld, await(t, c, one.TurnID).Code)
}

// F27: see docs/faults.md.
func TestUnknownWorkflowWaitsForAWorkerThatKnowsItThenIsAnswered(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.BindingGrace = 6 * time.Second
	start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	one.Workflow = "Later"
	publish(t, c, one)
	two := turn("t2", map[string]any{"name": "Ada"})
	two.Workflow = "Never"
	publish(t, c, two)
	start(t, s, oneturn.Config{
		Tools:        []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Later", Agent: "Greeter", Model: "Greeting"})},
		BindingGrace: 6 * time.Second,
	})
	require.True(t, await(t, c, one.TurnID).Success)
	require.Equal(t, events.CodeNoBinding, await(t, c, two.TurnID).Code)
}

func TestUnknownWorkflowIsAnsweredSoonByAWorkerThatIsAlone(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.BindingGrace = time.Hour
	config.Alone = func() bool { return true }
	start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	one.Workflow = "Helo"
	publish(t, c, one)
	require.Equal(t, events.CodeNoBinding, await(t, c, one.TurnID).Code)
}

func TestLargeResultIsABlobThatTheResponseNames(t *testing.T) {
	t.Parallel()
	s := server(t)
	text := strings.Repeat("x", store.InlineLimit+1)
	big := oneturn.NewTool("big", func(context.Context, greeting) (string, error) { return text, nil }, oneturn.ToolOptions{
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
	})
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{big}})
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	name, ok := object(t, r.Payload)["$blob"].(string)
	require.True(t, ok)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	store, err := js.ObjectStore(t.Context(), "ONETURN_BLOBS")
	require.NoError(t, err)
	data, err := store.GetBytes(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, `"`+text+`"`, string(data))
}

func TestContextChangesReachTheNextTurnThatBringsNoSnapshot(t *testing.T) {
	t.Parallel()
	s := server(t)
	count := oneturn.NewTool("count", func(ctx context.Context, _ greeting) (string, error) {
		vars := tool.Vars(ctx)
		n, _ := vars.Get("count")
		vars.Remove("gone")
		text := fmt.Sprintf("%vx", n)
		return text, vars.Set("count", text)
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{count}})
	c := client(t, s)
	for i, want := range []string{"seedx", "seedxx", "seedxxx"} {
		one := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		if i == 0 {
			one.ContextVariables = map[string]any{"count": "seed", "gone": true}
		}
		publish(t, c, one)
		r := await(t, c, one.TurnID)
		require.Equal(t, want, r.Payload)
		if i == 0 {
			require.Equal(t, []string{"count", "gone"}, r.ContextKeys)
		} else {
			require.Equal(t, []string{"count"}, r.ContextKeys)
		}
	}
}

// TestWorkersOfDifferentToolsShareAPool: a turn that one worker does not know is soon with
// the other.
func TestWorkersOfDifferentToolsShareAPool(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Other", Agent: "Greeter", Model: "Greeting"})}})
	c := client(t, s)
	for i := range 10 {
		one := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		if i%2 == 0 {
			one.Workflow = "Other"
		}
		publish(t, c, one)
		require.True(t, await(t, c, one.TurnID).Success)
	}
}
