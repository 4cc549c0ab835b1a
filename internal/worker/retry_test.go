package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// Retries with worker processes. A file "broken" in their folder makes the tool check fail, a file "slow" makes it wait.

const retriedProgram = `
agents: {Buyer: {}, Lead: {}}
tools:
- {name: run_plan, kind: plan, agent: Buyer, uses: [charge, check, run_plan]}
- {name: ask_all, kind: orchestrate, agent: Lead, uses: [charge, check]}
- {name: charge, kind: go, auto: false, effect: unsafe, output: {type: object, properties: {id: {type: string}}}}
- {name: check, kind: go, auto: false, effect: idempotent, output: {type: object, properties: {id: {type: string}}}}
`

const (
	envRetryURL    = "TEST_RETRY_URL"
	envRetryFolder = "TEST_RETRY_FOLDER"
)

type retriedItem struct {
	ID string `json:"id"`
}

// retryWorker runs a worker with the tools of retriedProgram, which keep a ledger.
func retryWorker(ctx context.Context) error {
	folder := os.Getenv(envRetryFolder)
	nc, err := nats.Connect(os.Getenv(envRetryURL))
	if err != nil {
		return err
	}
	defer nc.Close()
	ledger, err := oneturntest.OpenLedger(filepath.Join(folder, "ledger"))
	if err != nil {
		return err
	}
	defer ledger.Close()
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}
	noted := func(do func(ctx context.Context) error) func(ctx context.Context, in retriedItem) (retriedItem, error) {
		return func(ctx context.Context, in retriedItem) (retriedItem, error) {
			call := tool.Info(ctx)
			if err := ledger.Enter(call); err != nil {
				return in, err
			}
			err := do(ctx)
			return in, errors.Join(err, ledger.Exit(call))
		}
	}
	charge := noted(func(context.Context) error { return nil })
	check := noted(func(ctx context.Context) error {
		if has("broken") {
			return errors.New("the check failed")
		}
		for tick := time.NewTicker(10 * time.Millisecond); has("slow"); {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	w, err := oneturn.NewWorker(nc, oneturn.Config{Workflows: filepath.Join(folder, "workflows"), Tools: []oneturn.Tool{
		oneturn.NewTool("charge", charge, oneturn.ToolOptions{}), oneturn.NewTool("check", check, oneturn.ToolOptions{Effect: oneturn.Idempotent}),
	}})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// retryRig is a server with worker processes.
type retryRig struct {
	*testing.T

	server   *oneturntest.Server
	client   *oneturn.Client
	folder   string
	accepted []oneturntest.Accepted
}

func newRetryRig(t *testing.T) *retryRig {
	t.Helper()
	r := &retryRig{T: t, server: server(t), folder: t.TempDir()}
	r.client = client(t, r.server)
	write(t, filepath.Join(r.folder, "workflows"), "Shop/oneturn.yaml", retriedProgram)
	js, err := jetstream.New(r.server.Connect())
	require.NoError(t, err)
	require.NoError(t, oneturntest.Audit(t.Context(), js, r.space(), 1))
	return r
}

func (r *retryRig) space() subjects.Space {
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(r, err)
	return space
}

func (r *retryRig) start() *oneturntest.Process {
	return oneturntest.StartProcess(r, "retry", envRetryURL+"="+r.server.URL(), envRetryFolder+"="+r.folder)
}

func (r *retryRig) put(name string) {
	require.NoError(r, os.WriteFile(filepath.Join(r.folder, name), nil, 0o600))
}

func (r *retryRig) remove(name string) { require.NoError(r, os.Remove(filepath.Join(r.folder, name))) }

func (r *retryRig) accept(turn string) {
	r.accepted = append(r.accepted, oneturntest.Accepted{App: "app", Chat: "chat 1", Turn: turn, MayFail: true})
}

func (r *retryRig) id(turn string) oneturn.TurnID {
	return oneturn.TurnID{App: "app", Chat: "chat 1", Turn: turn}
}

// entries returns the calls that were entered, in order.
func (r *retryRig) entries() (calls []string) {
	ledger, err := oneturntest.ReadLedger(filepath.Join(r.folder, "ledger"))
	require.NoError(r, err)
	for _, e := range ledger {
		if e.Phase == oneturntest.PhaseEnter {
			calls = append(calls, e.Call)
		}
	}
	return calls
}

// entered waits until a call was entered.
func (r *retryRig) entered(call string) {
	require.Eventually(r, func() bool {
		calls := r.entries()
		return len(calls) > 0 && calls[len(calls)-1] == call
	}, 20*time.Second, 5*time.Millisecond, call)
}

// check compares all facts with the invariants.
func (r *retryRig) check() {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	facts, err := oneturntest.AtRest(ctx, r.server.Connect(), r.space(), filepath.Join(r.folder, "ledger"))
	require.NoError(r, err)
	facts.Accepted = r.accepted
	require.Empty(r, oneturntest.Check(facts, nil))
}

func TestRetryWhoseWorkerIsKilledEntersNoFinishedCallAgain(t *testing.T) {
	t.Parallel()
	r := newRetryRig(t)
	first := r.start()
	r.put("broken")
	data := map[string]any{"type": "tool_calls", "calls": []any{
		map[string]any{"tool_name": "charge", "arguments": map[string]any{"id": "x"}},
		map[string]any{"tool_name": "run_plan", "arguments": map[string]any{"plan": map[string]any{"type": "tool_calls", "calls": []any{
			map[string]any{"tool_name": "charge", "arguments": map[string]any{"id": "y"}},
			map[string]any{"tool_name": "check", "arguments": map[string]any{"id": "$0.output.id"}},
			map[string]any{"tool_name": "charge", "arguments": map[string]any{"id": "$1.output.id"}},
		}}}},
		map[string]any{"tool_name": "charge", "arguments": map[string]any{"id": "$0.output.id"}},
	}}
	publish(t, r.client, &oneturn.Turn{TurnID: r.id("turn"), Workflow: "Shop", Agent: "Buyer", Data: data})
	r.accept("turn")
	require.Equal(t, events.CodeToolError, await(t, r.client, r.id("turn")).Code)
	r.remove("broken")
	r.put("slow")
	retried, err := r.client.Retry(t.Context(), &oneturn.Retry{TurnID: r.id("turn")})
	require.NoError(t, err)
	r.accept(retried.Turn)
	r.entered("turn~retry1#1#1")
	first.Kill()
	second := r.start()
	r.entered("turn~retry1#1#1")
	require.Eventually(t, func() bool { return len(r.entries()) == 5 }, 20*time.Second, 5*time.Millisecond)
	r.remove("slow")
	response := await(t, r.client, retried.TurnID)
	require.True(t, response.Success, response.Content)
	require.Equal(t, []string{
		"turn#0", "turn#1#0", "turn#1#1", // it failed
		"turn~retry1#1#1", // its worker was killed
		"turn~retry1#1#1", "turn~retry1#1#2", "turn~retry1#2",
	}, r.entries())
	r.check()
	require.NoError(t, second.Stop(20*time.Second))
}

func TestManyRetriesOfOneTurnAreOneTurn(t *testing.T) {
	t.Parallel()
	r := newRetryRig(t)
	r.start()
	r.start()
	r.put("broken")
	steps := []any{
		map[string]any{"id": "fan", "parallel": map[string]any{"steps": []any{
			map[string]any{"agent_id": "charge", "result_key": "a", "with": map[string]any{"id": "x"}},
			map[string]any{"agent_id": "check", "result_key": "b", "with": map[string]any{"id": "y"}},
		}}},
		map[string]any{"id": "last", "agent": map[string]any{"agent_id": "charge", "with": map[string]any{"id": "{{ result.a.id }}{{ result.b.id }}"}}},
	}
	publish(t, r.client, &oneturn.Turn{TurnID: r.id("turn"), Workflow: "Shop", Agent: "Lead", Data: map[string]any{"plan": map[string]any{"steps": steps}}})
	r.accept("turn")
	require.Equal(t, events.CodeToolError, await(t, r.client, r.id("turn")).Code)
	r.remove("broken")
	retries := make(chan *oneturn.Retried, 8)
	for range cap(retries) {
		c, err := oneturn.NewClient(r.server.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
		require.NoError(t, err)
		go func() {
			retried, err := c.Retry(t.Context(), &oneturn.Retry{TurnID: r.id("turn")})
			if err != nil {
				t.Errorf("retry: %v", err)
			}
			retries <- retried
		}()
	}
	for range cap(retries) {
		require.Equal(t, "turn~retry1", (<-retries).Turn)
	}
	r.accept("turn~retry1")
	require.True(t, await(t, r.client, r.id("turn~retry1")).Success)
	listed, err := r.client.Steps(t.Context(), r.id("turn~retry1"))
	require.NoError(t, err)
	require.Len(t, listed, 3)
	require.Equal(t, api.Step{Call: "fan[0]", Tool: "charge", Depth: 1, State: api.StepCopied, Success: true, CopiedFrom: "turn#fan[0]"}, listed[0])
	for i, call := range []string{"fan[1]", "last"} {
		require.Equal(t, call, listed[i+1].Call)
		require.Equal(t, api.StepEnded, listed[i+1].State)
		require.Empty(t, listed[i+1].CopiedFrom)
	}
	require.ElementsMatch(t, []string{"turn#fan[0]", "turn#fan[1]", "turn~retry1#fan[1]", "turn~retry1#last"}, r.entries())
	r.check()
}
