package handlers_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestHandoffOfATurnThatWaitsLongIsDecidedHoweverManyMessagesFollow(t *testing.T) {
	t.Parallel()
	const many = 300 // more than the document of the chat keeps
	k := newMessageKit(t, map[string]string{"oneturn.yaml": strings.Replace(handoffWorkflow, "unsafe", "replay", 1)}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Set: map[string]any{"built": true}}, err
	})
	k.Drain() // a tool that asks is parked immediately
	k.deliver("m1", "Architect", `{"title":"Shop"}`, numbered(1))
	for i := range many {
		k.deliver("later"+strconv.Itoa(i), "Interviewer", "Patience.", numbered(int64(i+2)))
	}
	require.Nil(t, k.of("m1", "handoff"))
	k.kit.handled(k.answers(10_000, events.QuestionID("m1", "sure"), true))
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}
