package handlers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// TestRetryThatRanNothingIsNotRetriedItself is a retry that was cancelled before its program was stored: it has no results, and what the
// first turn has finished must not run again.
func TestRetryThatRanNothingIsNotRetriedItself(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	k.stopAfterClaim()
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), k.retry(3, 1, "turn")).Do)
	require.Equal(t, inbound.Ack, k.cancelTurn(4, events.TurnID{App: "app", Chat: "chat", Turn: "turn~retry1"}).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retry(3, 2, "turn")).Do)
	require.Equal(t, events.CodeCancelled, k.responseOf("turn~retry1").Code)
	require.NotContains(t, k.namesOf("turn~retry1"), "e 0 program")
	broken = false
	refused := k.retried(5, "turn~retry1")
	require.Equal(t, events.CodeBadArgs, refused.Code)
	require.Contains(t, refused.Content, `turn "turn~retry1" was a retry that ran nothing (cancelled): retry "turn" instead, under a new turn key`)
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retryAs(6, "again")).Do)
	require.True(t, k.responseOf("again").Success)
	require.Equal(t, []string{"#0", "#1", "again#1", "again#2"}, k.enteredCalls())
}

// stopAfterClaim has the worker stop after the next claim of a retry.
func (k *programKit) stopAfterClaim() {
	set, asked := k.Bindings(), 0
	k.Bindings = func() *bindings.Set {
		if asked++; asked == 3 { // twice before the claim, then to run
			panic("the worker stops after the claim")
		}
		return set
	}
}

// TestRetryWhoseWorkerStopsAfterItsClaimRunsTheSameCalls: the next owner reads the turn to retry once more, since no program is stored.
func TestRetryWhoseWorkerStopsAfterItsClaimRunsTheSameCalls(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	broken = false
	k.stopAfterClaim()
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), k.retry(3, 1, "turn")).Do)
	require.Equal(t, []string{"e 0 tool_call"}, k.namesOf("turn~retry1"))
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retry(3, 2, "turn")).Do)
	r := k.responseOf("turn~retry1")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"#0", "#1", "~retry1#1", "~retry1#2"}, k.enteredCalls())
	require.Equal(t, "turn#0", results(t, r)[0]["copied_from"])
}

func TestSecondRetryAfterAFailedOneRunsOnlyWhatBothHaveNotFinished(t *testing.T) {
	t.Parallel()
	var broken atomic.Value
	broken.Store("#1")
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if strings.HasSuffix(call.CallID, broken.Load().(string)) { //nolint:forcetypeassert // it is stored above
			return tools.Result{}, errBroken
		}
		return echo(ctx, call)
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	require.Equal(t, events.CodeToolError, k.retried(2, "turn").Code, "it still fails at the same call")
	broken.Store("#2")
	require.Equal(t, events.CodeToolError, k.retried(3, "turn~retry1").Code, "it fails at the next one")
	broken.Store("none")
	r := k.retried(4, "turn~retry2")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"#0", "#1", "~retry1#1", "~retry2#1", "~retry2#2", "~retry3#2"}, k.enteredCalls())
	all := results(t, r)
	require.Equal(t, []any{"turn#0", "turn~retry2#1", nil}, []any{all[0]["copied_from"], all[1]["copied_from"], all[2]["copied_from"]})
}

func TestRetryOfAPartialProgramIsRefused(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [
		{"id": "first", "on_error": "continue", "agent": {"agent_id": "two", "with": {"id": "A"}}},
		{"id": "last", "agent": {"agent_id": "one", "with": {"id": "B"}}}]}}`, 1)).Do)
	require.Equal(t, events.StatusOK, k.response().Status)
	require.False(t, k.response().Success)
	broken = false
	r := k.retried(2, "turn")
	require.Equal(t, events.CodeBadArgs, r.Code)
	require.Contains(t, r.Content, `turn "turn" has run to its end, and its failures were tolerated, so nothing is left to run: send a corrected turn with correction_of`)
	require.Equal(t, []string{"#first", "#last"}, k.enteredCalls())
}

// TestRetryOfATurnUnderAReusedKeyIsRefused has two turns under one key: a retry names the first by the key, and cannot name the second.
func TestRetryOfATurnUnderAReusedKeyIsRefused(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKitOf(t, "on_key_reuse: run\n"+programWorkflow, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	reused := k.plan("A", strings.Replace(threeCalls, `"x"`, `"y"`, 1), 1)
	reused.Lease.Seq = 2
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), reused).Do)
	entered := k.enteredCalls()
	require.Len(t, entered, 4)
	id := "turn" + strings.TrimSuffix(entered[2], "#0")
	_, qualified := events.Unqualified(id)
	require.True(t, qualified, id)

	broken = false
	r := k.retried(3, id)
	require.Equal(t, events.CodeBadArgs, r.Code)
	require.Contains(t, r.Content, "a turn under a reused key (on_key_reuse: run) cannot be retried: send it again under a new turn key")
	require.Equal(t, entered, k.enteredCalls())
	require.True(t, k.retried(4, "turn").Success)
	require.Equal(t, []string{"~retry1#1", "~retry1#2"}, k.enteredCalls()[4:])
}

// TestKeyOfARetryIsNotReused has two retries that differ: the second would run the same calls once more.
func TestKeyOfARetryIsNotReused(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKitOf(t, "on_key_reuse: run\n"+programWorkflow, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	broken = false
	require.True(t, k.retried(2, "turn").Success)
	entered := k.enteredCalls()
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retry(3, 1, "turn", "1")).Do)
	require.Equal(t, entered, k.enteredCalls())
	require.Equal(t, []string{"turn_conflict"}, k.deadReasons())
}
