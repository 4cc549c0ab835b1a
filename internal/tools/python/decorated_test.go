package python_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const decorated = `
import functools
def logged(function):
    def inner(*args, **kwargs):  # without functools.wraps
        return function(*args, **kwargs)
    return inner
def wrapped(function):
    @functools.wraps(function)
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
def with_tries(tries):
    def decorate(function):
        def inner(*args, verbose=False, **kwargs): return [verbose, tries, function(*args, **kwargs)]
        return inner
    return decorate
class Counted:
    def __init__(self, function): self.function, self.calls = function, 0
    def __call__(self, *args, **kwargs): self.calls += 1; return self.function(*args, **kwargs)
def narrowed(function):
    @functools.wraps(function)
    def inner(item): return function(item, "given by the decorator")
    return inner
class Shop:
    def take(self, item, context_variables): return pair(item, context_variables)
    def any(self, **fields): return fields
def pair(item, context_variables): return [item, context_variables.get("x")]
def _plain(item, context_variables): return pair(item, context_variables)
@logged
def one(item, context_variables): return pair(item, context_variables)
@logged
@wrapped
@logged
def three(item, context_variables=None): return pair(item, context_variables)
@with_tries(3)
def tried(item, context_variables): return pair(item, context_variables)
@Counted
def counted(item, context_variables): return pair(item, context_variables)
@narrowed
def narrow(item, context_variables): return [item, context_variables]
assigned = logged(_plain)
partly = functools.partial(_plain, item="fixed")
method = Shop().take
anything = logged(Shop().any)
async def _later(item, context_variables): return pair(item, context_variables)
later = logged(_later)
def kwargs(**data): return data
def both(item, **data): return [item, data]
def mixed(first, *rest, item=None): return [first, rest, item]
`

// TestDecoratedFunctionsGetWhatTheirSignatureAsks, when the worker has seen no signature.
func TestDecoratedFunctionsGetWhatTheirSignatureAsks(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", decorated)
	for function, want := range map[string]string{
		"one": `["tea",1]`, "three": `["tea",1]`, "tried": `[true,3,["tea",1]]`, "counted": `["tea",1]`, "assigned": `["tea",1]`,
		"partly": `["tea",1]`, "method": `["tea",1]`, "later": `["tea",1]`, "narrow": `["tea","given by the decorator"]`,
		"anything": `{"Item":"tea","verbose":true,"first":"f"}`, "kwargs": `{"Item":"tea","verbose":true,"first":"f"}`,
		"both": `["tea",{"verbose":true,"first":"f"}]`, "mixed": `["f",[],"tea"]`,
	} {
		call := newCall(t, function, `{"Item":"tea","verbose":true,"first":"f"}`)
		call.MapArgs, call.Context = true, map[string]any{"x": json.Number("1")}
		result, err := k.pool.Tool("WF", "t.py", function).Invoke(t.Context(), call)
		require.NoError(t, err, function)
		require.JSONEq(t, want, string(result.Value), function)
	}
}

// TestContextReachesAFunctionWithADecoratorThatShowsNothing: the worker has read that the function
// names it.
func TestContextReachesAFunctionWithADecoratorThatShowsNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
def registered(function):
    table = {"run": function}  # no function that could be found
    def inner(*args, **kwargs): return table["run"](*args, **kwargs)
    return inner
@registered
def hidden(item, context_variables): context_variables.set("seen", item); return item
@registered
def without(item): return item
`)
	call := newCall(t, "hidden", `{"item":"tea"}`)
	call.Context = map[string]any{}
	result, err := k.pool.Tool("WF", "t.py", "hidden").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"seen": "tea"}, result.Set)
	require.Equal(t, `"tea"`, k.value("without", `{"item":"tea"}`))
}

// TestRuntimeGetsWhatTheTurnKnowsAndTheContext, whether the worker has seen the signature or not.
func TestRuntimeGetsWhatTheTurnKnowsAndTheContext(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import functools
def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
def plain(service, **runtime):
    known = {name: value for name, value in runtime.items() if name != "context_variables"}
    return [service, runtime["context_variables"].get("x"), known]
decorated = logged(plain)
def alone(**runtime): return sorted(runtime)
def other(service, **kwargs): return sorted(kwargs)
`)
	invoke := func(function string, mapped bool) string {
		call := newCall(t, function, `{"service":"mail","chat_id":"from the worker"}`)
		call.MapArgs, call.Context = mapped, map[string]any{"x": json.Number("1")}
		result, err := k.pool.Tool("WF", "t.py", function).Invoke(t.Context(), call)
		require.NoError(t, err, function)
		return string(result.Value)
	}
	require.JSONEq(t, `["mail",1,{"chat_id":"from the worker"}]`, invoke("plain", false), "the worker has put there what the turn knows")
	require.JSONEq(t, `["mail",1,{"chat_id":"from the worker","app_id":"app","enterprise_id":"app","workflow_name":"WF","workflow":"WF","turn_idempotency_key":"turn-1","agent_name":"A","agent":"A","user_id":"u1","run_id":"r1"}]`, invoke("decorated", true))
	require.JSONEq(t, `["agent","agent_name","app_id","chat_id","context_variables","enterprise_id","run_id","service","turn_idempotency_key","user_id","workflow","workflow_name"]`, invoke("alone", true))
	require.JSONEq(t, `["chat_id"]`, invoke("other", true), "of another name it takes fields only")
}

// TestRuntimeIsTheTurnsWhateverTheModelWrites, when the worker has seen no signature.
func TestRuntimeIsTheTurnsWhateverTheModelWrites(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
def seen(found): return {name: value for name, value in found.items() if name not in ("chat_id", "app_id", "enterprise_id", "turn_idempotency_key", "agent_name", "agent", "user_id", "run_id", "context_variables")}
def show(order, **runtime): return [order, seen(runtime)]
def named(order, Workflow=None, **runtime): return [order, Workflow, seen(runtime)]
def alone(**runtime): return seen(runtime)
def other(order, workflow=None, **kwargs): return [order, workflow, seen(kwargs)]
`)
	const data = `{"order":1,"workflow":"Payments","WorkFlow":"Other","Workflow":"Third","admin":true,"note":"n"}`
	for _, c := range []struct {
		function string
		fields   []string
		want     string
	}{
		{"show", []string{"order"}, `[1,{"workflow":"WF","workflow_name":"WF"}]`},
		{"show", []string{"order", "note"}, `[1,{"workflow":"WF","workflow_name":"WF"}]`},
		{"show", nil, `[1,{"workflow":"WF","workflow_name":"WF"}]`},
		{"named", []string{"order"}, `[1,"WF",{"workflow":"WF","workflow_name":"WF"}]`},
		{"named", nil, `[1,"WF",{"workflow":"WF","workflow_name":"WF"}]`},
		{"named", []string{"order", "Workflow"}, `[1,"Third",{"workflow":"WF","workflow_name":"WF"}]`},
		{"alone", []string{"order"}, `{"order":1,"workflow":"WF","workflow_name":"WF"}`},
		{"alone", []string{"order", "workflow"}, `{"order":1,"workflow":"Payments","workflow_name":"WF"}`},
		{"alone", nil, `{"order":1,"admin":true,"note":"n","workflow":"WF","workflow_name":"WF"}`},
		{"other", nil, `[1,"Payments",{"admin":true,"note":"n"}]`},
	} {
		call := newCall(t, c.function, data)
		call.MapArgs, call.Fields = true, c.fields
		result, err := k.pool.Tool("WF", "t.py", c.function).Invoke(t.Context(), call)
		require.NoError(t, err, c.function)
		require.JSONEq(t, c.want, string(result.Value), "%s %v", c.function, c.fields)
	}
}
