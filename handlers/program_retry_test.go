package handlers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// retry is a delivery of a retry of a turn.
func (k *programKit) retry(seq, delivery uint64, of string, rerun ...string) *inbound.Message {
	k.t.Helper()
	body, err := events.EncodeTurn(events.NewRetry(events.TurnID{App: "app", Chat: "chat", Turn: events.RetryKey(of)}, "WF", of, rerun), time.Now())
	require.NoError(k.t, err)
	m := k.message(seq, delivery)
	m.Subject, m.Data = k.space.In("default", events.KindRetry, "app", "WF", "chat"), body
	return m
}

// retried handles a retry, and returns its response.
func (k *programKit) retried(seq uint64, of string, rerun ...string) *events.ToolResponse {
	k.t.Helper()
	require.Equal(k.t, inbound.Ack, k.Handle(k.t.Context(), k.retry(seq, 1, of, rerun...)).Do)
	return k.responseOf(events.RetryKey(of))
}

func (k *programKit) responseOf(turn string) *events.ToolResponse {
	k.t.Helper()
	r, err := k.store.Last(k.t.Context(), subjects.TurnKey("app", "chat", "", turn).Public("tool_response"))
	require.NoError(k.t, err, turn)
	response, err := events.ReadResponse(r.Data)
	require.NoError(k.t, err)
	return response
}

// namesOf are the records of a turn in the order in which they were stored, without tenant, chat and turn.
func (k *programKit) namesOf(turn string) (names []string) {
	k.t.Helper()
	key := subjects.TurnKey("app", "chat", "", turn)
	records, err := k.store.Scan(k.t.Context(), key, nil)
	require.NoError(k.t, err)
	for _, r := range records {
		parsed, _ := subjects.ParseKey(r.Key)
		names = append(names, strings.Join([]string{r.Key[:1], parsed.Call, parsed.Kind}, " "))
	}
	return names
}

// results are the results of a plan.
func results(t *testing.T, r *events.ToolResponse) []map[string]any {
	t.Helper()
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok, "%v", r)
	list, ok := payload["results"].([]any)
	require.True(t, ok, "%v", payload)
	all := make([]map[string]any, 0, len(list))
	for _, item := range list {
		all = append(all, item.(map[string]any)) //nolint:forcetypeassert // they are results
	}
	return all
}

// failing is a tool that fails while broken is set.
func failing(broken *bool, err error) toolFunc {
	return func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if *broken {
			return tools.Result{}, err
		}
		return echo(ctx, call)
	}
}

var errBroken = errors.New("broken")

const threeCalls = `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}},
	{"tool_name": "two", "arguments": {"id": "$0.output.id"}}, {"tool_name": "two", "arguments": {"id": "$1.output.id"}}]}`

func TestRetryRunsTheFailedCallAndWhatFollowsAndCopiesTheRest(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	require.Equal(t, events.CodeToolError, k.response().Code)
	broken = false
	r := k.retried(2, "turn")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"#0", "#1", "~retry1#1", "~retry1#2"}, k.enteredCalls())
	require.Equal(t, []string{
		"e 0 tool_call", "e 0 program", "e s_1 tool_call", "e s_1 tool_response", "e s_2 tool_call", "e s_2 tool_response", "e 0 tool_response",
	}, k.namesOf("turn~retry1"))
	all := results(t, r)
	require.Len(t, all, 3)
	require.Equal(t, "turn#0", all[0]["copied_from"])
	require.Equal(t, map[string]any{"id": "x"}, all[0]["arguments"])
	for _, result := range all {
		require.Equal(t, map[string]any{"id": "x"}, result["output"], "references into copied outputs are resolved")
	}
	require.NotContains(t, all[1], "copied_from")
}

func TestRetryThatIsSentAgainIsOneTurn(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	broken = false
	k.retried(2, "turn")
	entered := k.enteredCalls()
	for _, m := range []*inbound.Message{k.retry(2, 2, "turn"), k.retry(3, 1, "turn"), k.retry(4, 1, "turn", "1")} {
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
		require.Equal(t, entered, k.enteredCalls())
	}
	require.Equal(t, []string{"turn_conflict"}, k.deadReasons(), "another retry under the same key")
}

func TestRetryOfARetryKeepsWhatBothHaveFinished(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{"#1": true, "~retry1#2": true}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if broken[strings.TrimPrefix(call.CallID, "turn")] {
			return tools.Result{}, errBroken
		}
		return echo(ctx, call)
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	require.Equal(t, events.CodeToolError, k.retried(2, "turn").Code)
	k.forget("turn") // what a retry needs is in its own records
	r := k.retried(3, "turn~retry1")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"#0", "#1", "~retry1#1", "~retry1#2", "~retry2#2"}, k.enteredCalls())
	all := results(t, r)
	require.Equal(t, "turn#0", all[0]["copied_from"])
	require.Equal(t, "turn~retry1#1", all[1]["copied_from"])
}

func TestRetryOfACallWhoseEffectMayHaveHappenedNeedsConsent(t *testing.T) {
	t.Parallel()
	in := make(chan struct{}, 1)
	stuck := true
	k := newProgramKit(t, map[string]toolFunc{"two": echo, "one": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if stuck {
			in <- struct{}{}
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}
		return echo(ctx, call)
	}})
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "two", "arguments": {"id": "x"}}, {"tool_name": "one", "arguments": {"id": "$0.output.id"}}]}`
	over := make(chan inbound.Disposition, 1)
	go func() { over <- k.Handle(t.Context(), k.plan("A", plan, 1)) }()
	<-in
	require.Equal(t, inbound.Ack, k.cancelTurn(2, events.TurnID{App: "app", Chat: "chat", Turn: "turn"}).Do)
	k.cancelSeen()
	<-over
	require.Equal(t, events.CodeCancelled, k.response().Code)
	stuck = false
	refused := k.retried(3, "turn")
	require.Equal(t, events.CodeBadArgs, refused.Code)
	require.Contains(t, refused.Content, "call 1 of tool one (cancelled, unsafe)")
	require.Contains(t, refused.Content, "may or may not have happened")
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())

	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retryAs(4, "again", "1")).Do)
	require.True(t, k.responseOf("again").Success)
	require.Equal(t, []string{"#0", "#1", "again#1"}, k.enteredCalls())
}

// retryAs is a delivery of a retry of the turn under a key.
func (k *programKit) retryAs(seq uint64, key string, rerun ...string) *inbound.Message {
	k.t.Helper()
	body, err := events.EncodeTurn(events.NewRetry(events.TurnID{App: "app", Chat: "chat", Turn: key}, "WF", "turn", rerun), time.Now())
	require.NoError(k.t, err)
	m := k.retry(seq, 1, "turn")
	m.Data = body
	return m
}

func TestRetryIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken), "t": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	require.Equal(t, events.CodeBadArgs, k.retried(2, "missing").Code)
	require.Contains(t, k.responseOf("missing~retry1").Content, "has no records")
	for of, want := range map[string]string{
		"missing~retry1": `retry "missing" instead`,
	} {
		r := k.retried(3, of)
		require.Equal(t, events.CodeBadArgs, r.Code)
		require.Contains(t, r.Content, want)
	}
	r := k.retried(4, "turn", "0")
	require.Contains(t, r.Content, "call 0 has ended")
	m := k.retry(5, 1, "turn")
	m.Subject = k.space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	require.Equal(t, []string{"subject_mismatch"}, k.deadReasons())
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())

	broken = false
	k.Bindings = k.changed(t, "output: {type: object, properties: {id: {type: string}}}", "output: {type: object, required: [id], properties: {id: {type: integer}}}")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retryAs(6, "later")).Do)
	r = k.responseOf("later")
	require.Equal(t, events.CodeValidationFailed, r.Code)
	require.Contains(t, r.Content, "the result of call 0 does not fit the output schema that tool one has now")
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
}

func TestRetryOfATurnThatSucceededIsRefused(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 1)).Do)
	require.Contains(t, k.retried(2, "turn").Content, "has succeeded")
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
}

func TestRetryOfAGroupRunsOnlyTheCallsThatFailed(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [
		{"id": "fan", "parallel": {"steps": [{"agent_id": "one", "result_key": "a", "with": {"id": "A"}}, {"agent_id": "two", "result_key": "b", "with": {"id": "B"}}]}},
		{"id": "last", "agent": {"agent_id": "one", "with": {"id": "{{ result.a.id }}{{ result.b.id }}"}}}]}}`, 1)).Do)
	require.Equal(t, events.CodeToolError, k.response().Code)
	broken = false
	r := k.retried(2, "turn")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"~retry1#fan[1]", "~retry1#last"}, k.enteredCalls()[2:])
	text := string(events.JSONOf(r.Payload))
	require.Contains(t, text, `"exec_id":"turn#fan[0]"`)
	require.Contains(t, text, `"exec_id":"turn~retry1#fan[1]"`)
	require.Contains(t, text, `{"id":"AB"}`)
}

func TestRetryOfANestedProgramKeepsItsFinishedCalls(t *testing.T) {
	t.Parallel()
	broken := true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}},
		{"tool_name": "run_plan", "arguments": {"plan": `+threeCalls+`}}, {"tool_name": "two", "arguments": {"id": "$0.output.id"}}]}`, 1)).Do)
	require.Equal(t, events.CodeToolError, k.response().Code)
	require.Equal(t, []string{"#0", "#1#0", "#1#1"}, k.enteredCalls())
	broken = false
	r := k.retried(2, "turn")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"~retry1#1#1", "~retry1#1#2", "~retry1#2"}, k.enteredCalls()[3:])
	require.Contains(t, string(events.JSONOf(r.Payload)), `"copied_from":"turn#1#0"`)
}

func TestRetryContinuesFromItsOwnRecordsWhenItsWorkerHasStopped(t *testing.T) {
	t.Parallel()
	in, dies := make(chan struct{}, 1), make(chan struct{})
	broken, first := true, true
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		switch {
		case broken:
			return tools.Result{}, errBroken
		case first:
			first = false
			in <- struct{}{}
			<-dies
		}
		return echo(ctx, call)
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", threeCalls, 1)).Do)
	broken = false
	held, lose := context.WithCancel(t.Context())
	lost := k.retry(2, 1, "turn")
	lost.Held = held
	over := make(chan inbound.Disposition, 1)
	go func() { over <- k.Handle(t.Context(), lost) }()
	<-in
	k.forget("turn")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.retry(2, 2, "turn")).Do)
	lose()
	close(dies)
	<-over
	r := k.responseOf("turn~retry1")
	require.True(t, r.Success, r.Content)
	require.Equal(t, []string{"#0", "#1", "~retry1#1", "~retry1#1", "~retry1#2"}, k.enteredCalls())
	require.Len(t, results(t, r), 3)
}

func TestLargeOutputsOfARetryStandAlone(t *testing.T) {
	t.Parallel()
	broken := true
	large := strings.Repeat("x", 300<<10)
	k := newProgramKit(t, map[string]toolFunc{"two": failing(&broken, errBroken), "one": func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: []byte(`{"id":"` + large + `"}`)}, nil
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 1)).Do)
	broken = false
	r := k.retried(2, "turn")
	require.True(t, r.Success, r.Content)
	_, isBlob := events.BlobOf(r.Payload)
	require.True(t, isBlob)
	require.Equal(t, []string{"#0", "#1", "~retry1#1"}, k.enteredCalls())
}

// forget deletes the records of a turn and all that are older, as their retention does.
func (k *programKit) forget(turn string) {
	k.t.Helper()
	records, err := k.store.Scan(k.t.Context(), subjects.TurnKey("app", "chat", "", turn), nil)
	require.NoError(k.t, err)
	k.store.Expire(records[len(records)-1].Seq)
}

// changed returns the manifests with another text.
func (k *programKit) changed(t *testing.T, from, to string) func() *bindings.Set {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "WF"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "WF", "oneturn.yaml"), []byte(strings.ReplaceAll(programWorkflow, from, to)), 0o600))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)
	return func() *bindings.Set { return set }
}

func TestRetryOfAPlannedProgramAsksNoPlannerAndOnlyTheResponderIfAllElseIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		broken  bool
		entered []string
	}{
		"a call failed":      {[]string{`"No."`, `"Done."`}, true, []string{"~retry1#1"}},
		"the answer failed":  {[]string{"!model is down", `"Done."`}, false, nil},
		"also in the second": {[]string{"!model is down", "!model is down", `"Done."`}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := c.broken
			plans, answers := &scriptedAgent{replies: []string{twoCalls}}, &scriptedAgent{replies: c.answers}
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": failing(&broken, errBroken), "planner": plans.reply, "writer": answers.reply})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", askForPlan, 1)).Do)
			require.NotEmpty(t, k.response().Code)
			broken = false
			turn := "turn"
			for i := range len(c.answers) - 1 {
				r := k.retried(uint64(i+2), turn)
				require.Equal(t, i == len(c.answers)-2, r.Success, r.Content)
				turn = events.RetryKey(turn)
			}
			require.Equal(t, "Done.", k.responseOf(turn).Content)
			require.Equal(t, int32(1), plans.asked.Load(), "the plan is kept")
			require.Contains(t, string(events.JSONOf(answers.last.Load().Args)), `\"id\":\"x\"`)
			calls := slices.DeleteFunc(k.enteredCalls(), func(call string) bool { return strings.Contains(call, "#~") })
			require.Equal(t, slices.Concat([]string{"#0", "#1"}, c.entered), calls)
		})
	}
}
