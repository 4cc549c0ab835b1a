package handlers_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
)

const readWorkflow = `
agents: {Interviewer: , Seller: , Clerk: , Architect: {model: Plan}}
models:
  Plan: {type: object, required: [title], properties: {title: {type: string}}}
tools:
- {name: build, kind: go, agent: Architect, effect: idempotent}
- {name: find, kind: go, auto: false, effect: none, max_attempts: 2}
handoffs: [{from: Interviewer, to: Seller, condition: '${plan} == "free"'}, {from: Interviewer, to: Clerk}]
context:
  plan:
    source: {type: data_reference, tool: find, collection: plans, query_template: {app: "{{runtime.app_id}}"}}
    transitions: [{from: free, to: gold, trigger: {type: agent_text, agent: Interviewer, match: {equals: UPGRADE}}}]
  limit: {type: integer, source: {type: data_entity, tool: find, collection: limits, query_template: {plan: "{{var.plan}}"}}}
`

// reads is a message kit whose variables a tool reads.
type reads struct {
	*messageKit

	mu    sync.Mutex
	calls []string              // of find, by collection
	seen  map[string]any        // context of build, as it was called last
	rows  map[string]string     // results of find in JSON, by collection
	fails map[string]error      // errors of find, by collection
	args  map[string]tools.Call // of find
}

func newReads(t *testing.T) *reads {
	t.Helper()
	r := &reads{rows: map[string]string{"plans": `"free"`, "limits": `"5"`}, fails: map[string]error{}, args: map[string]tools.Call{}}
	r.messageKit = newMessageKit(t, map[string]string{"oneturn.yaml": readWorkflow}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if call.Name == "build" {
			vars, err := call.LoadContext(ctx)
			r.seen = vars
			return tools.Result{Value: []byte(`{}`)}, err
		}
		collection, _ := call.Args["collection"].(string)
		r.calls, r.args[collection] = append(r.calls, collection), *call
		return tools.Result{Value: json.RawMessage(r.rows[collection]), Set: map[string]any{"plan": "ignored"}}, r.fails[collection]
	})
	return r
}

func TestVariablesThatToolsReadAreReadOnceBeforeTriggersHandoffsAndTools(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	r.deliver("m1", "Interviewer", "UPGRADE")
	require.Equal(t, []string{"plans", "limits"}, r.calls)
	require.Equal(t, map[string]any{"app": "app"}, r.args["plans"].Args["query_template"])
	require.Equal(t, map[string]any{"plan": "free"}, r.args["limits"].Args["query_template"], "of the variable before")
	require.Empty(t, r.args["plans"].Agent, "no list of what an agent may call applies")
	require.Equal(t, "gold", r.of("m1", "context_update", "plan")["value"], "from: free holds")
	require.Equal(t, "Clerk", r.of("m1", "handoff")["to"])

	r.deliver("m2", "Architect", `{"title":"Shop"}`)
	require.Equal(t, "gold", r.seen["plan"])
	require.Equal(t, json.Number("5"), r.seen["limit"], "the text is of the type of the variable")
	require.Equal(t, []string{"plans", "limits"}, r.calls)
}

func TestTurnReadsTheVariablesThatItsToolNeeds(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	r.deliver("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, "free", r.seen["plan"])
	require.Equal(t, map[string]any{"plan": "free", "limit": json.Number("5")}, r.variables())
	r.deliver("m2", "Interviewer", "hello")
	require.Equal(t, "Seller", r.of("m2", "handoff")["to"])
	require.Equal(t, []string{"plans", "limits"}, r.calls)
}

func TestVariableThatCannotBeReadIsNullForTheWholeChat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row   string
		err   error
		calls int
	}{
		"error":      {"", errors.New("no such collection"), 1},
		"retried":    {"", tools.Retryable(errors.New("the database is busy")), 2},
		"reported":   {`{"status":"error"}`, nil, 1},
		"wrong type": {`"many"`, nil, 1},
		"too large":  {`"` + strings.Repeat("x", 300<<10) + `"`, nil, 1},
		"not JSON":   {`{`, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReads(t)
			r.rows["limits"], r.fails["limits"] = c.row, c.err
			for _, id := range []string{"m1", "m2"} {
				r.deliver(id, "Architect", `{"title":"Shop"}`)
				require.Equal(t, true, r.responseOf(id)["success"])
				require.Equal(t, "free", r.seen["plan"])
				require.Nil(t, r.seen["limit"])
			}
			require.Len(t, r.calls, 1+c.calls)
			require.Equal(t, map[string]any{"plan": "free", "limit": nil}, r.variables())
		})
	}
}

func TestValueOfTheSnapshotIsNotReadAgain(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	r.deliver("m1", "Interviewer", "hello", func(e *events.AgentMessage) { e.ContextVariables = map[string]any{"plan": "gold", "limit": nil} })
	require.Equal(t, []string{"limits"}, r.calls)
	require.Equal(t, map[string]any{"plan": "gold"}, r.args["limits"].Args["query_template"])
	require.Equal(t, "Clerk", r.of("m1", "handoff")["to"])
}

// brokenFill is a store of variables that fails to fill, and counts what is asked of it.
type brokenFill struct {
	variables.Store

	err   error
	asked int
}

func (b *brokenFill) Unread(ctx context.Context, app, chat string, below variables.Layers, names []string) (map[string]any, []string, error) {
	b.asked++
	return b.Store.Unread(ctx, app, chat, below, names)
}

func (b *brokenFill) Fill(ctx context.Context, app, chat string, values map[string]any) error {
	if b.err != nil {
		return b.err
	}
	return b.Store.Fill(ctx, app, chat, values)
}

func TestNextWorkerReadsAgainWhatWasNotStored(t *testing.T) {
	t.Parallel()
	for _, message := range []*events.AgentMessage{{Agent: "Interviewer", Content: "UPGRADE"}, {Agent: "Architect", Content: `{"title":"Shop"}`}} {
		r := newReads(t)
		broken := &brokenFill{Store: r.Variables, err: errors.New("no response from the server")}
		r.Variables = broken
		m := r.writes("m1", message.Agent, message.Content)
		r.Handle(t.Context(), m)
		require.Equal(t, []string{"plans", "limits"}, r.calls)
		broken.err = nil
		if message.Agent == "Interviewer" {
			r.handled(again(m))
			require.Equal(t, "gold", r.of("m1", "context_update", "plan")["value"])
		} else {
			r.deliver("m2", message.Agent, message.Content)
			require.Equal(t, "free", r.seen["plan"])
		}
		require.Equal(t, []string{"plans", "limits", "plans", "limits"}, r.calls)
	}
}

func TestDrainOfAWorkerLeavesReadingToTheNext(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	r.fails["plans"] = tools.Retryable(errors.New("the database is busy"))
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the worker is stopping"))
	require.NotEqual(t, inbound.Ack, r.Handle(ctx, r.writes("m1", "Interviewer", "UPGRADE")).Do)
	require.Empty(t, r.variables())
}

func TestWorkflowWithoutSuchVariablesReadsNothingMore(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.LoadContext(ctx)
		return tools.Result{Value: []byte(`{}`)}, err
	})
	asked := &brokenFill{Store: k.Variables}
	k.Variables = asked
	k.deliver("m1", "Interviewer", "NEXT")
	k.deliver("m2", "Architect", `{"title":"Shop"}`)
	require.Zero(t, asked.asked)
}

func TestVariablesWithoutRoomAreNull(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	big := `"` + strings.Repeat("x", 200<<10) + `"`
	r.rows["plans"] = big
	require.NoError(t, r.Variables.Merge(t.Context(), "app", "chat", 1, variables.Delta{Set: map[string]any{"a": strings.Repeat("x", 400<<10)}}))
	r.deliver("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, true, r.responseOf("m1")["success"])
	require.Nil(t, r.seen["plan"])
	require.Nil(t, r.seen["limit"])
	require.Len(t, r.variables(), 3)
}

func TestValuesThatAreStoredFirstCount(t *testing.T) {
	t.Parallel()
	r := newReads(t)
	below := variables.Layers{Start: map[string]any{"plan": "none"}}
	values, unread, err := r.Variables.Unread(t.Context(), "app", "chat", below, []string{"plan", "limit"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"plan": "none"}, values)
	require.Equal(t, []string{"plan", "limit"}, unread)
	require.NoError(t, r.Variables.Fill(t.Context(), "app", "chat", map[string]any{"plan": "free"}))
	require.NoError(t, r.Variables.Fill(t.Context(), "app", "chat", map[string]any{"plan": "late", "limit": nil}))
	require.Equal(t, map[string]any{"plan": "free", "limit": nil}, r.variables())
	require.NoError(t, r.Variables.Merge(t.Context(), "app", "chat", 1, variables.Delta{Set: map[string]any{"limit": "set"}, Remove: []string{"plan"}}))
	require.NoError(t, r.Variables.Fill(t.Context(), "app", "chat", map[string]any{"plan": "late", "limit": "late"}))
	require.Equal(t, map[string]any{"limit": "set"}, r.variables())
	_, unread, err = r.Variables.Unread(t.Context(), "app", "chat", below, []string{"plan", "limit"})
	require.NoError(t, err)
	require.Empty(t, unread)
}
