package handlers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

const raceThenLast = `{"plan": {"steps": [{"id": "fan", "parallel": {"result_key": "first", "merge_strategy": "first_success", "steps": [
	{"agent_id": "one", "with": {"id": "one"}}, {"agent_id": "two", "with": {"id": "two"}}]}},
	{"id": "last", "agent": {"agent_id": "two", "with": {"id": "{{ result.first.id }}"}}}]}}`

// slowBlobs takes longer to read an output than reads may take once the worker stops.
type slowBlobs struct{ store.BlobStore }

func (b slowBlobs) Value(ctx context.Context, key subjects.Key, kind string, stored any) (any, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(1100 * time.Millisecond):
	}
	return b.BlobStore.Value(ctx, key, kind, stored)
}

// The other call succeeds although it was stopped, and its output is read after that.
func TestOutputOfACallThatWasStoppedIsRead(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Args["id"] == "two" {
			<-ctx.Done()
		}
		return echo(ctx, call)
	}})
	k.Blobs = slowBlobs{k.Blobs}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", raceThenLast, 1)).Do)
	require.True(t, k.response().Success, "%v", k.response())
}

// stalledLoser handles a turn by an owner whose race is won while the other call of it stalls, and by the next one to its end. The stalled call,
// the first one of tool two with the argument "two", ends when the call after the race does, if releases is set, else after the turn.
func stalledLoser(t *testing.T, agent, data, loser string, releases bool) *programKit {
	t.Helper()
	var k *programKit
	stalled := newStalling()
	k = newProgramKit(t, map[string]toolFunc{"one": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		<-stalled.entered
		return echo(ctx, call)
	}, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Args["id"] == "two" {
			return stalled.run(ctx, call)
		}
		if releases {
			close(stalled.released)
			require.Eventually(t, func() bool { return slices.Contains(k.names(), "e "+subjects.StepCall(loser)+".tool_response") }, 10*time.Second, time.Millisecond)
		}
		return echo(ctx, call)
	}})
	first := make(chan inbound.Disposition, 1)
	held, lose := context.WithCancel(t.Context())
	lost := k.plan(agent, data, 1)
	lost.Held = held
	go func() { first <- k.Handle(t.Context(), lost) }()
	winner := strings.Replace(loser, "[1]", "[0]", 1)
	require.Eventually(t, func() bool { return slices.Contains(k.names(), "e "+subjects.StepCall(winner)+".tool_response") }, 10*time.Second, time.Millisecond)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(agent, data, 2)).Do)
	lose()
	if !releases {
		close(stalled.released)
	}
	<-first
	require.True(t, k.response().Success, "%v", k.response())
	return k
}

// raced are the calls of the group that is the first step of an orchestration, by the payload of its response.
func raced(t *testing.T, response *events.ToolResponse) []flow.StepResult {
	t.Helper()
	var payload flow.OrchestrationResult
	require.NoError(t, json.Unmarshal(events.JSONOf(response.Payload), &payload))
	require.NotEmpty(t, payload.Steps)
	return payload.Steps[0].Children
}

func TestPayloadAfterATakeoverHasTheSuccessThatTheFormerOwnerStoredAfterTheRaceWasWon(t *testing.T) {
	t.Parallel()
	k := stalledLoser(t, "O", raceThenLast, "fan[1]", true)
	calls := raced(t, k.response())
	require.Equal(t, flow.StatusSuccess, calls[0].Status)
	require.Equal(t, flow.StatusSuccess, calls[1].Status)
	require.Equal(t, map[string]any{"id": "two"}, calls[1].Output)
	require.Equal(t, "The program has ended: 3 calls, all successful.", k.response().Content)
	require.Equal(t, map[string]any{"id": "one"}, k.stepResponses()["last"].Payload, "the race has the winner that it had")
}

func TestLoserOfARaceThatTheFormerOwnerHasNotEndedIsStopped(t *testing.T) {
	t.Parallel()
	k := stalledLoser(t, "O", raceThenLast, "fan[1]", false)
	calls := raced(t, k.response())
	require.Equal(t, flow.StatusSuccess, calls[0].Status)
	require.Equal(t, flow.StatusSkipped, calls[1].Status)
	require.Equal(t, "turn#fan[1]", calls[1].ExecID)
	require.Equal(t, events.CodeCancelled, k.stepResponses()["fan[1]"].Code)
	require.Equal(t, "The program has ended: 2 successful, 1 stopped because another was first.", k.response().Content)
}

func TestPayloadOfANestedProgramAfterATakeoverHasTheSuccessOfTheFormerOwner(t *testing.T) {
	t.Parallel()
	k := stalledLoser(t, "A", calls(`cp__agent_orchestrate `+raceThenLast), "0#fan[1]", true)
	require.Equal(t, flow.StatusSuccess, raced(t, k.stepResponses()["0"])[1].Status)
}
