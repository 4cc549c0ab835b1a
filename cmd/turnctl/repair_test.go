package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func mustSpace(t *testing.T) subjects.Space {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return space
}

// orphan stores the claim of a turn whose message is gone.
func orphan(t *testing.T, s *oneturntest.Server, chat, turn, effect string) {
	t.Helper()
	body, err := events.Encode(events.KindToolCall, &events.ToolCall{
		ID: turn, AppID: events.DefaultApp, ChatID: chat, Turn: turn, Agent: "Greeter", ToolName: "greet", ToolCallID: turn, CallID: turn,
		Corr: turn, WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
		Payload: events.ToolCallPayload{ToolArgs: map[string]any{"name": "Ada"}},
	}, time.Now())
	require.NoError(t, err)
	header := nats.Header{}
	for name, value := range map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1",
		idempotency.HeaderEffect: effect, idempotency.HeaderLease: "ONETURN_IN/987654/1",
	} {
		header.Set(name, value)
	}
	record(t, s, subjects.TurnKey(events.DefaultApp, chat, "", turn).Public(events.KindToolCall), header, string(body))
}

func TestRepairPublishesAResumeForEachTurnWithoutAMessage(t *testing.T) {
	t.Parallel()
	d := newWorkerServer(t)
	orphan(t, d.Server, "a", "t1", "unsafe")
	orphan(t, d.Server, "b", "t2", "idempotent")
	d.publish(t, turnID("a", "", "done"), "Ada")
	d.publish(t, turnID("a", "", "held"), "slow")
	require.Contains(t, ok(t, d.Server, "repair", "a", "done"), "ended")

	var out repaired
	require.Eventually(t, func() bool { // until they are old enough to judge
		code, stdout, _ := turnctl(t, d.Server, "repair", "--dry-run", "-o", "json")
		out = decodeText[repaired](t, stdout)
		return code == cli.Failed && len(out.Turns) == 2
	}, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, 3, out.Open)
	for i, turn := range []string{"t1", "t2"} {
		require.Equal(t, turn, out.Turns[i].Turn)
		require.Equal(t, sweep.TurnOrphaned, out.Turns[i].Condition)
		require.Zero(t, out.Turns[i].ResumeSeq)
		require.Equal(t, query.Running, decode[turnReport](t, d.Server, "show", string(rune('a'+i)), turn).State, "a dry run changes nothing")
	}
	require.Contains(t, ok(t, d.Server, "repair", "a", "held"), "held")

	require.Contains(t, ok(t, d.Server, "repair", "--chat", "b"), "resume published as message")
	ended := func(chat, turn string) *turnReport {
		var l turnReport
		require.Eventually(t, func() bool {
			l = decode[turnReport](t, d.Server, "show", chat, turn)
			return l.State == query.Ended
		}, 10*time.Second, 10*time.Millisecond)
		return &l
	}
	require.True(t, ended("b", "t2").Response.Success)
	require.Equal(t, query.Running, decode[turnReport](t, d.Server, "show", "a", "t1").State, "the other chat was left alone")
	named := decode[repaired](t, d.Server, "repair", "a", "t1")
	require.Positive(t, named.Turns[0].ResumeSeq)
	require.Equal(t, events.CodeInterrupted, ended("a", "t1").Response.Code)
	require.Contains(t, ok(t, d.Server, "repair", "--dry-run"), "1 open turn, ")
}

func TestRepairByKeyAndOfTurnsPastTheirLife(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	orphan(t, s, "a", "t1", "unsafe")
	key := subjects.TurnKey(events.DefaultApp, "a", "", "t1").String()
	young := decode[repaired](t, s, "repair", "--key", key)
	require.Equal(t, sweep.TurnYoung, young.Turns[0].Condition)
	require.Equal(t, 1, young.Young)
	require.Positive(t, young.RetryS)
	require.Regexp(t, `young +too young: try again in \d+ s\n$`, ok(t, s, "repair", "a", "t1"))
	require.Regexp(t, `^1 open turn, 1 too young to check: try again in \d+ s\n$`, ok(t, s, "repair"))
	expired := decode[repaired](t, s, "repair", "--key", key, "--max-turn-life", "1ms").Turns[0]
	require.Equal(t, sweep.TurnExpired, expired.Condition)
	require.Positive(t, expired.ResumeSeq)
	code, stdout, stderr := turnctl(t, s, "repair", "a", "missing")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "no record of turn missing of chat a", "as show answers")
	for _, args := range [][]string{{"a"}, {"a", "t1", "--key", key}, {"a", "t1", "--chat", "a"}, {"--run", "r"}, {"--max-turn-life", "0s"}, {"a", "b", "c"}} {
		code, _, stderr := turnctl(t, s, append([]string{"repair"}, args...)...)
		require.Equal(t, cli.Usage, code, fmt.Sprint(args))
		require.NotEmpty(t, stderr)
	}
}
