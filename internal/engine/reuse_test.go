package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestResultsAreSharedWithinTheirScopeOnly(t *testing.T) {
	t.Parallel()
	ada := tools.Call{Name: "t", Turn: events.TurnID{App: "a", Chat: "c"}, UserID: "ada"}
	others := map[string]tools.Call{
		"chat":   {Name: "t", Turn: events.TurnID{App: "a", Chat: "d"}, UserID: "ada"},
		"user":   {Name: "t", Turn: events.TurnID{App: "a", Chat: "c"}, UserID: "bob"},
		"nobody": {Name: "t", Turn: events.TurnID{App: "a", Chat: "c"}},
		"app":    {Name: "t", Turn: events.TurnID{App: "b", Chat: "c"}, UserID: "ada"},
		"split":  {Name: "t", Turn: events.TurnID{App: "ac", Chat: ""}, UserID: "ada"},
	}
	for scope, shared := range map[bindings.Scope][]string{
		"":                   {"user", "nobody"},
		bindings.ScopeChat:   {"user", "nobody"},
		bindings.ScopeUser:   {"chat"},
		bindings.ScopeTenant: {"chat", "user", "nobody"},
		bindings.ScopeGlobal: {"chat", "user", "nobody", "app", "split"},
	} {
		l := inLab(t, echo)
		l.tool.Cache.Scope = scope
		do := func(call tools.Call) engine.Outcome {
			return engine.New(l.o).Do(t.Context(), engine.Invocation{Call: &call, Tool: l.tool})
		}
		require.False(t, do(ada).Cached)
		require.True(t, do(ada).Cached)
		for who, call := range others {
			cache := l.o.Cache.(*memory) //nolint:forcetypeassert // the lab's own
			before := len(cache.values)
			require.Equal(t, slices.Contains(shared, who), do(call).Cached, "scope %q, other %s", scope, who)
			if scope == bindings.ScopeUser && who == "nobody" {
				require.Len(t, cache.values, before, "without a user nothing is stored")
			}
		}
		l.tool.Version = "2"
		require.False(t, do(ada).Cached, "another version is another tool")
		l.tool.ID = "other"
		require.False(t, do(ada).Cached)
	}
}

func TestCallerThatAGuardRefusesDoesNotGetTheResultOfAnother(t *testing.T) {
	t.Parallel()
	when, err := guards.Compile(guards.Declared{On: guards.OnInput, When: `user_id == "mallory"`})
	require.NoError(t, err)
	own, err := guards.Compile(guards.Declared{On: guards.OnOutput, When: `chat_id == "other"`})
	require.NoError(t, err)
	size, err := guards.Compile(guards.Declared{On: guards.OnInput, MaxBytes: 100})
	require.NoError(t, err)
	ada := tools.Call{Name: "t", Agent: "Clerk", Turn: events.TurnID{App: "a", Chat: "c"}, UserID: "ada"}
	mallory, robot, other := ada, ada, ada
	mallory.UserID, robot.Agent, other.Turn.Chat = "mallory", "Robot", "other"
	for name, c := range map[string]struct {
		guard   guards.Guard
		refused *tools.Call // by the guard
		shares  *tools.Call // with ada, as the guard does not distinguish them
	}{
		"condition on a user":   {when, &mallory, &robot},
		"condition on a chat":   {own, &other, &mallory},
		"list of allowed tools": {guards.Allow{"Robot": nil}, &robot, &mallory},
		"size":                  {size, nil, &mallory},
		"guard of a program":    {guard{input: func(c *tools.Call) error { return map[string]error{"mallory": refuse("no")}[c.UserID] }}, &mallory, nil},
	} {
		l := inLab(t, echo)
		l.tool.Cache.Scope, l.tool.Guards = bindings.ScopeGlobal, []guards.Guard{c.guard}
		do := func(call tools.Call) engine.Outcome {
			return engine.New(l.o).Do(t.Context(), engine.Invocation{Call: &call, Tool: l.tool})
		}
		require.True(t, do(ada).Success, name)
		require.True(t, do(ada).Cached, name)
		if c.refused != nil {
			require.Equal(t, events.CodeGuardrail, do(*c.refused).Code, name)
		}
		if c.shares != nil {
			require.True(t, do(*c.shares).Cached, name)
		}
	}
}

func TestOnlyResultsThatDependOnTheArgumentsAloneAreStored(t *testing.T) {
	t.Parallel()
	secret := &redact.SecretAnswers{}
	secret.AddSecret([]byte(`"swordfish-4711"`), nil)
	for name, r := range map[string]tools.Result{
		"sets a variable":    {Set: map[string]any{"a": true}},
		"removes a variable": {Remove: []string{"a"}},
		"failed by its word": {Value: json.RawMessage(`{"status":"error"}`)},
	} {
		l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) { return r, nil })
		l.run("")
		require.False(t, l.run("").Cached, name)
	}
	l := inLab(t, echo)
	for range 2 {
		require.False(t, engine.New(l.o).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t", Secrets: secret}, Tool: l.tool}).Cached, "a secret was handed out")
	}
	synctest.Test(t, func(t *testing.T) {
		asks := inLab(t, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			return tools.Result{}, call.Host.Dismiss(ctx, "")
		})
		for range 2 {
			o := engine.New(asks.o).Do(t.Context(), engine.Invocation{Call: &tools.Call{Name: "t"}, Tool: asks.tool, Hosts: waiter{attempts: new(int)}})
			require.True(t, o.Success)
			require.False(t, o.Cached, "people were waited for")
		}
	})
}

func TestStoredResultIsItsOwnCopy(t *testing.T) {
	t.Parallel()
	value := []byte(`{"a":1}`)
	l := inLab(t, func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{Value: value}, nil })
	l.run("")
	value[5] = '2'
	require.Equal(t, `{"a":1}`, string(l.run("").Payload))
}
