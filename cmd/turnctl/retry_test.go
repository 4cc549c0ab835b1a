package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// programServer is a server with a worker that runs plans of the tools find, which has no effect, and charge, which is unsafe.
type programServer struct {
	*oneturntest.Server

	client *oneturn.Client
	dir    string        // of the manifests
	in     chan struct{} // charge was entered

	mu      sync.Mutex
	entered []string
	last    string // tool_call_id of charge
	full    bool   // charge fails
	stuck   bool   // charge does not return
}

const programManifest = `
agents: {Buyer: {}}
tools:
- {name: run_plan, kind: plan, agent: Buyer}
- {name: find, kind: go, auto: false, effect: none, output: {type: object, properties: {id: {type: string}}}}
- {name: charge, kind: go, auto: false, output: {type: object, properties: {id: {type: string}}}}
`

type item struct {
	ID string `json:"id"`
}

func newProgramServer(t *testing.T) *programServer {
	t.Helper()
	return newProgramServerOf(t, programManifest)
}

func newProgramServerOf(t *testing.T, manifest string) *programServer {
	t.Helper()
	p := &programServer{Server: newServer(t), in: make(chan struct{}, 8)}
	dir := workflowsOf(t, map[string]string{"Shop/oneturn.yaml": manifest})
	p.dir = dir
	enter := func(name string) (full, stuck bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.entered = append(p.entered, name)
		return p.full, p.stuck
	}
	find := func(_ context.Context, in item) (item, error) {
		enter("find")
		return in, nil
	}
	charge := func(ctx context.Context, in item) (item, error) {
		full, stuck := enter("charge")
		p.mu.Lock()
		p.last = tool.Info(ctx).CallID
		p.mu.Unlock()
		p.in <- struct{}{}
		if stuck {
			<-ctx.Done()
			return in, ctx.Err()
		}
		if full {
			return in, errors.New("the card was refused")
		}
		return in, nil
	}
	w, err := oneturn.NewWorker(p.Connect(), oneturn.Config{
		Workflows: dir, Tools: []oneturn.Tool{oneturn.NewTool("find", find, oneturn.ToolOptions{Workflow: "Shop", Agent: "Buyer"}), oneturn.NewTool("charge", charge, oneturn.ToolOptions{Workflow: "Shop", Agent: "Buyer"})},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	p.client, err = oneturn.NewClient(p.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	return p
}

func (p *programServer) set(full, stuck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full, p.stuck = full, stuck
}

func (p *programServer) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.entered...)
}

func (p *programServer) publish(t *testing.T, turn string) {
	t.Helper()
	p.publishOf(t, turn, "x")
}

// publishOf publishes a turn that finds an item.
func (p *programServer) publishOf(t *testing.T, turn, item string) {
	t.Helper()
	_, err := p.client.Publish(t.Context(), &oneturn.Turn{
		TurnID: turnID("c", "", turn), Workflow: "Shop", Agent: "Buyer", Data: map[string]any{"type": "tool_calls", "calls": []any{
			map[string]any{"tool_name": "find", "arguments": map[string]any{"id": item}},
			map[string]any{"tool_name": "charge", "arguments": map[string]any{"id": "$0.output.id"}},
			map[string]any{"tool_name": "find", "arguments": map[string]any{"id": "$1.output.id"}},
		}},
	})
	require.NoError(t, err)
}

func (p *programServer) await(t *testing.T, turn string) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := p.client.Await(ctx, turnID("c", "", turn))
	require.NoError(t, err)
	return r
}

func TestRetryShowsWhatItCopiesAndRunsTheRest(t *testing.T) {
	t.Parallel()
	p := newProgramServer(t)
	p.set(true, false)
	p.publish(t, "turn")
	require.Equal(t, events.CodeToolError, p.await(t, "turn").Code)
	p.set(false, false)
	require.Equal(t, `turn turn of chat c, retried as turn~retry1
  0  find    copied  it succeeded
  1  charge  runs    it failed (tool_error)
  2  find    runs    it did not start
nothing was published. Without --dry-run the retry is published, and a worker checks the kept results; --workflows DIR checks them here
`, ok(t, p.Server, "retry", "c", "turn", "--dry-run"))
	require.Equal(t, []string{"find", "charge"}, p.calls())
	r := decode[retryReport](t, p.Server, "retry", "c", "turn")
	require.Equal(t, "turn~retry1", r.Retry)
	require.NotZero(t, r.Message)
	require.True(t, p.await(t, "turn~retry1").Success)
	require.Equal(t, []string{"find", "charge", "charge", "find"}, p.calls(), "the first call is not entered again")

	require.Contains(t, ok(t, p.Server, "show", "c", "turn"), "retried as  turn~retry1\n")
	retried := ok(t, p.Server, "show", "c", "turn~retry1")
	require.Contains(t, retried, "retry of  turn\n")
	require.Regexp(t, `0 +find +copied +from turn#0\n`, retried)
	require.Equal(t, `step 0 (find) of turn turn~retry1 of chat c, app default step 0 (find) was copied, its call and result are in the turn that has run it: `+
		`turnctl show c 'turn#0' --payload the turn: turnctl show c 'turn~retry1'`, strings.Join(strings.Fields(ok(t, p.Server, "show", "c", "turn~retry1#0")), " "))
	step := ok(t, p.Server, "show", "c", "turn#1")
	require.Contains(t, step, "#1 tool_response")
	require.NotContains(t, step, "#0 tool_response", "only the step is printed")
	require.Contains(t, ok(t, p.Server, "show", "c", "turn#2"), "\nstep 2 (find) did not start\n")
	l := decode[turnReport](t, p.Server, "show", "c", "turn~retry1")
	require.Equal(t, "copied", l.Steps[0].Word)
	require.True(t, l.Steps[0].Success)

	require.Equal(t, "turn turn of chat c was retried before, as turn~retry1: nothing is published\n"+
		"it has ended (success): turnctl show c 'turn~retry1'\n", ok(t, p.Server, "retry", "c", "turn"))
	require.Len(t, p.calls(), 4, "the same retry is one turn")
	code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn~retry1")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, `turn "turn~retry1" has succeeded: nothing is left to run`)
}

func TestRetryNamesTheCallsOfItsOperatorToTheWorker(t *testing.T) {
	t.Parallel()
	p := newProgramServer(t)
	p.set(true, false)
	p.publish(t, "turn")
	require.Equal(t, events.CodeToolError, p.await(t, "turn").Code)
	p.set(false, false)
	ok(t, p.Server, "retry", "c", "turn", "--rerun", "1") // it needs none by the records; by stricter manifests of a worker it may
	require.True(t, p.await(t, "turn~retry1").Success)
	js, err := jetstream.New(p.Connect())
	require.NoError(t, err)
	journal, err := js.KeyValue(t.Context(), "ONETURN_TURNS")
	require.NoError(t, err)
	claim, err := journal.Get(t.Context(), subjects.TurnKey(events.DefaultApp, "c", "", "turn~retry1").Public(events.KindToolCall))
	require.NoError(t, err)
	require.Contains(t, string(claim.Value()), `"rerun":["1"]`)
	code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn", "--live")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "--workflows")
}

func TestRetryOfAnUncertainCallNeedsItsName(t *testing.T) {
	t.Parallel()
	p := newProgramServer(t)
	p.set(false, true)
	p.publish(t, "turn")
	<-p.in
	_, err := p.client.Cancel(t.Context(), &oneturn.Cancel{TurnID: turnID("c", "", "turn"), Workflow: "Shop"})
	require.NoError(t, err)
	require.Equal(t, events.CodeCancelled, p.await(t, "turn").Code)
	p.set(false, false)
	code, stdout, _ := turnctl(t, p.Server, "retry", "c", "turn")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, "1  charge  runs    it ended as cancelled: its effect (unsafe) may have happened")
	require.Contains(t, stdout, "--rerun 1")
	for rerun, want := range map[string]string{
		"0,1": "call 0 has ended", "charge": `the program has no call "charge" to run again: its calls are 0, 1, 2; did you mean 1 (tool charge)?`,
	} {
		code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn", "--rerun", rerun)
		require.Equal(t, cli.Usage, code)
		require.Contains(t, stderr, want)
	}
	code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn#1")
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "turn#1 is a step: give the turn: turn")

	// The client publishes it, and the worker refuses it with the same reason. That does not use up the retry.
	retried, err := p.client.Retry(t.Context(), &oneturn.Retry{TurnID: turnID("c", "", "turn")})
	require.NoError(t, err)
	require.False(t, retried.Existed)
	refused := p.await(t, retried.Turn)
	require.Equal(t, events.CodeBadArgs, refused.Code)
	require.Contains(t, refused.Content, "call 1 of tool charge (cancelled, unsafe)")
	require.Equal(t, []string{"find", "charge"}, p.calls())

	r := decode[retryReport](t, p.Server, "retry", "c", "turn", "--rerun", "1")
	require.Equal(t, "turn~retry2", r.Retry)
	require.True(t, p.await(t, "turn~retry2").Success)
	require.Equal(t, []string{"find", "charge", "charge", "find"}, p.calls())
	retried, err = p.client.Retry(t.Context(), &oneturn.Retry{TurnID: turnID("c", "", "turn"), Rerun: []string{"1"}})
	require.NoError(t, err)
	require.True(t, retried.Existed)
	require.Equal(t, "turn~retry2", retried.Turn)
}

func TestDryRunWithManifestsFindsWhatTheWorkerWouldRefuse(t *testing.T) {
	t.Parallel()
	p := newProgramServer(t)
	p.set(true, false)
	p.publish(t, "turn")
	require.Equal(t, events.CodeToolError, p.await(t, "turn").Code)
	require.Contains(t, ok(t, p.Server, "retry", "c", "turn", "--dry-run", "--workflows", p.dir), "nothing was published. With these manifests a worker runs the retry: publish it without --dry-run\n")
	for from, c := range map[string]struct {
		to, want string
		code     events.Code
	}{
		"find, kind: go, auto: false, effect: none, output: {type: object, properties: {id: {type: string": {
			to:   "find, kind: go, auto: false, effect: none, output: {type: object, properties: {id: {type: integer",
			want: "the result of call 0 does not fit the output schema that tool find has now, so it cannot be kept: /id: expected integer, got string. Send the program again as a new turn",
			code: events.CodeValidationFailed,
		},
		"agent: Buyer": {to: "agent: Buyer, enabled: false", want: "tool run_plan is disabled", code: events.CodeGuardrail},
	} {
		dir := workflowsOf(t, map[string]string{"Shop/oneturn.yaml": strings.Replace(programManifest, from, c.to, 1)})
		for _, args := range [][]string{{"--dry-run"}, nil} {
			code, stdout, stderr := turnctl(t, p.Server, append([]string{"retry", "c", "turn", "--workflows", dir}, args...)...)
			require.Equal(t, cli.Failed, code, stderr)
			require.Contains(t, stdout, "not published: with these manifests a worker would refuse it\n  refused ("+string(c.code)+"): "+c.want)
		}
	}
	code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn", "--workflows", workflowsOf(t, map[string]string{"Other/oneturn.yaml": "tools: []\n"}))
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "Shop")
	for manifest, want := range map[string]string{
		programManifest + "oops: [":                                                        "tool \"run_plan\"",
		strings.ReplaceAll(programManifest, "run_plan", "run_plans"):                       `the turn to retry cannot run: workflow "Shop" has no tool "run_plan", and none is shared: did you mean "run_plans"?`,
		strings.Replace(programManifest, "agent: Buyer}", "agent: Buyer, uses: [fnd]}", 1): `uses names the unknown tool "fnd"`,
		strings.Replace(programManifest, "kind: plan", "kind: go", 1):                      `tool "run_plan" is of kind go with the current manifests: send its work as a new turn`,
	} {
		code, _, stderr := turnctl(t, p.Server, "retry", "c", "turn", "--workflows", workflowsOf(t, map[string]string{"Shop/oneturn.yaml": manifest}))
		require.Equal(t, cli.Usage, code)
		require.Contains(t, stderr, want)
		require.Contains(t, stderr, "turnctl check")
	}
	require.Equal(t, []string{"find", "charge"}, p.calls(), "nothing was published")

	// Without a folder, the worker decides the same.
	retried, err := p.client.Retry(t.Context(), &oneturn.Retry{TurnID: turnID("c", "", "turn")})
	require.NoError(t, err)
	require.False(t, p.await(t, retried.Turn).Success)
}

func TestRetryOfATurnUnderAReusedKeyIsRefusedByName(t *testing.T) {
	t.Parallel()
	p := newProgramServerOf(t, "on_key_reuse: run\n"+programManifest)
	p.set(true, false)
	p.publish(t, "turn")
	require.Equal(t, events.CodeToolError, p.await(t, "turn").Code)
	p.publishOf(t, "turn", "y")
	require.Eventually(t, func() bool { return len(p.calls()) == 4 }, 20*time.Second, 20*time.Millisecond)
	p.mu.Lock()
	id := strings.TrimSuffix(p.last, "#1")
	p.mu.Unlock()
	code, _, stderr := turnctl(t, p.Server, "retry", "c", id)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "turn "+id+" runs under a reused key (on_key_reuse: run) and cannot be retried: send it again under a new turn key")
	_, err := p.client.Retry(t.Context(), &oneturn.Retry{TurnID: turnID("c", "", id)})
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, "a turn under a reused key (on_key_reuse: run) cannot be retried")
}

func TestRetryThatIsNotPossibleReportsTheReason(t *testing.T) {
	t.Parallel()
	p := newProgramServer(t)
	p.publish(t, "good")
	require.True(t, p.await(t, "good").Success)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no record of turn missing of chat c", []string{"c", "missing"}},
		{`turn "good" has succeeded`, []string{"c", "good"}},
	} {
		code, _, stderr := turnctl(t, p.Server, append([]string{"retry"}, c.args...)...)
		require.Equal(t, cli.Failed, code)
		require.Contains(t, stderr, c.want)
	}
	_, err := p.client.Retry(t.Context(), &oneturn.Retry{TurnID: turnID("c", "", "missing")})
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, "has no records")
	_, err = p.client.Retry(t.Context(), &oneturn.Retry{})
	require.ErrorContains(t, err, "has no chat")
}
