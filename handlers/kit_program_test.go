package handlers_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// programKit is a kit whose workflow has programs; its tools are functions by name.
type programKit struct {
	*kit

	mu      sync.Mutex
	entered []string // tools, in the order in which they were entered
}

const programWorkflow = `
agents: {A: , O: , P: , Q: , C: , T: }
tools:
- {name: careful, kind: plan, agent: C, approve: true, planner: planner, uses: [one, two]}
- {name: hurried, kind: orchestrate, agent: T, respond: writer, uses: [one, two], program: {timeout: 100ms}}
- {name: ask_plan, kind: plan, agent: P, planner: planner, respond: writer, uses: [one, two]}
- {name: ask_agents, kind: orchestrate, agent: Q, planner: planner, uses: [one, two, cp__agent_orchestrate]}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
- {name: writer, kind: agent, auto: false, nats: {subject: agents.writer}}
- {name: run_plan, kind: plan, agent: A, uses: [run_plan, cp__agent_orchestrate, one, two, ask, free, careful, hurried, ask_plan, ask_agents]}
- {name: cp__agent_orchestrate, kind: orchestrate, agent: O, uses: [run_plan, cp__agent_orchestrate, one, two, ask, free, careful, hurried, ask_plan, ask_agents]}
- {name: one, kind: go, auto: false, effect: unsafe, output: {type: object, properties: {id: {type: string}}}}
- {name: two, kind: go, auto: false, effect: idempotent, output: {type: object, properties: {id: {type: string}}}}
- {name: ask, kind: go, auto: false, effect: replay, output: {type: object, properties: {id: {type: string}}}}
- {name: free, kind: go, auto: false}
`

// loadPrograms returns the bindings of a workflow with this manifest.
func loadPrograms(t *testing.T, manifest string) *bindings.Set {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "WF"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "WF", "oneturn.yaml"), []byte(manifest), 0o600))
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)
	return set
}

func newProgramKit(t *testing.T, funcs map[string]toolFunc) *programKit {
	t.Helper()
	return newProgramKitOf(t, programWorkflow, funcs)
}

func newProgramKitOf(t *testing.T, manifest string, funcs map[string]toolFunc) *programKit {
	t.Helper()
	set := loadPrograms(t, manifest)
	k := &programKit{kit: newKit(t, nil)}
	k.Bindings = func() *bindings.Set { return set }
	k.Tool = func(b *bindings.Binding) (tools.Invoker, error) {
		f := funcs[b.Tool]
		return toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			k.mu.Lock()
			k.entered = append(k.entered, strings.TrimPrefix(call.CallID, "turn"))
			k.mu.Unlock()
			return f(ctx, call)
		}), nil
	}
	return k
}

// plan is a delivery of a turn whose data is given as JSON.
func (k *programKit) plan(agent, data string, delivery uint64) *inbound.Message {
	k.t.Helper()
	tree, err := events.Decode([]byte(data))
	require.NoError(k.t, err)
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Agent: agent, Data: tree, AutoToolMode: true,
	}, time.Now())
	require.NoError(k.t, err)
	m := k.message(1, delivery)
	m.Data = body
	return m
}

// names are the records of the turn in the order in which they were stored, without tenant, chat and turn.
func (k *programKit) names() (names []string) {
	k.t.Helper()
	records, err := k.store.Scan(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn"), nil)
	require.NoError(k.t, err)
	for _, r := range records {
		name := strings.Replace(r.Key, ".app.chat.0-turn.", " ", 1)
		names = append(names, name)
	}
	return names
}

func (k *programKit) enteredCalls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.entered)
}

func echo(_ context.Context, call *tools.Call) (tools.Result, error) {
	data, err := call.EncodedArgs()
	return tools.Result{Value: data}, err
}

// stalling is a tool that stalls in its first run, as if its worker were paused, and echoes in the others.
type stalling struct {
	entered, released chan struct{}
	runs              atomic.Int32
}

func newStalling() *stalling {
	return &stalling{entered: make(chan struct{}, 1), released: make(chan struct{})}
}

func (s *stalling) run(ctx context.Context, call *tools.Call) (tools.Result, error) {
	if s.runs.Add(1) == 1 {
		s.entered <- struct{}{}
		<-s.released
	}
	return echo(ctx, call)
}

// takenOver handles a plan by an owner whose tool stalls, and by the next one to the end. It returns the disposition of the first message.
func (k *programKit) takenOver(agent, data string, tool *stalling) inbound.Disposition {
	k.t.Helper()
	held, lose := context.WithCancel(k.t.Context())
	lost, over := k.plan(agent, data, 1), make(chan inbound.Disposition, 1)
	lost.Held = held
	go func() { over <- k.Handle(k.t.Context(), lost) }()
	<-tool.entered
	require.Equal(k.t, inbound.Ack, k.Handle(k.t.Context(), k.plan(agent, data, 2)).Do)
	lose()
	close(tool.released)
	return <-over
}
