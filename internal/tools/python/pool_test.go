package python_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// kit is a folder of workflows with a pool over it.
type kit struct {
	tb   testing.TB
	root string
	pool *python.Pool
	log  *harness.Output
}

// newKit writes files, each a name and a text, and opens a pool over them. The pool is closed
// at the end of the test.
func newKit(tb testing.TB, opts python.Options, files ...string) *kit {
	tb.Helper()
	k := &kit{tb: tb, root: filepath.Join(tb.TempDir(), "flows"), log: &harness.Output{}}
	require.NoError(tb, os.MkdirAll(filepath.Join(k.root, "WF", "tools"), 0o750))
	for i := 0; i+1 < len(files); i += 2 {
		k.write(files[i], files[i+1])
	}
	if opts.Root == "" {
		opts.Root = k.root
	}
	if opts.Size == 0 {
		opts.Size = 1
	}
	opts.Logger = slog.New(slog.NewTextHandler(k.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	k.pool = python.NewPool(opts)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(tb, k.pool.Close(ctx))
		if tb.Failed() {
			tb.Log(k.log.String())
		}
	})
	return k
}

func (k *kit) write(name, text string) {
	k.tb.Helper()
	path := filepath.Join(k.root, filepath.FromSlash(name))
	require.NoError(k.tb, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(k.tb, os.WriteFile(path, []byte(text), 0o600))
}

// invoke runs t.py's function with arguments as JSON.
func (k *kit) invoke(ctx context.Context, function, args string) (tools.Result, error) {
	return k.pool.Tool("WF", "t.py", function).Invoke(ctx, newCall(k.tb, function, args))
}

// value runs t.py's function, which must succeed, and returns its result as JSON.
func (k *kit) value(function, args string) string {
	k.tb.Helper()
	result, err := k.invoke(k.tb.Context(), function, args)
	require.NoError(k.tb, err)
	return string(result.Value)
}

// fails runs t.py's function, which must fail with the code, and returns the message.
func (k *kit) fails(function, args string, code events.Code) string {
	k.tb.Helper()
	ctx, cancel := context.WithTimeout(k.tb.Context(), 20*time.Second)
	defer cancel()
	_, err := k.invoke(ctx, function, args)
	return message(k.tb, err, code)
}

func message(tb testing.TB, err error, code events.Code) string {
	tb.Helper()
	var e *events.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, code, e.Code, e.Msg)
	return e.Msg
}

func newCall(tb testing.TB, function, args string) *tools.Call {
	tb.Helper()
	tree, err := events.Decode([]byte(args))
	require.NoError(tb, err)
	object, ok := tree.(map[string]any)
	require.True(tb, ok)
	return &tools.Call{
		Turn:   events.TurnID{App: "app", Chat: "c1", Run: "r1", Turn: "turn-1"},
		CallID: "turn-1", Workflow: "WF", Agent: "A", UserID: "u1", Name: function,
		Args: object, IdempotencyKey: "key-1", FencingToken: 7, Epoch: 1, Attempt: 1,
	}
}

func TestRecordedToolsGiveTheRecordedResults(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "mozaiks", "workflows", "WF", "tools", "t.py"))
	require.NoError(t, err)
	k := newKit(t, python.Options{}, "WF/tools/t.py", string(source))

	require.JSONEq(t, `["y"]`, k.value("sync_tool", `{"name":"y"}`))
	require.JSONEq(t, `{"status":"FAILED","message":"no good"}`, k.value("errdict", `{"name":"x"}`))
	require.Equal(t, "null", k.value("none_tool", `{"name":"x"}`))
	require.Equal(t, `"b"`, k.value("multi_b", `{"name":"x"}`))
	require.JSONEq(t, `{"status":"success","ran":true}`, k.value("snake", `{"module_agents":["a"]}`))
	require.JSONEq(t, `{"v":null,"s":[1,2],"b":"xx"}`, k.value("nan", `{"name":"x"}`))
	require.Equal(t, "boom x", k.fails("fails", `{"name":"x"}`, events.CodeUserError))
	require.Equal(t, "needs() missing 1 required positional argument: 'must'", k.fails("needs", `{"name":"x"}`, events.CodeBadArgs))
	require.Contains(t, k.fails("circ", `{"name":"x"}`, events.CodeToolError), "result.me")
	require.Equal(t, "SystemExit: 3", k.fails("baseexc", `{"name":"x"}`, events.CodeToolError))

	call := newCall(t, "greet", `{"agent_message":" hi ","name":"Al","chat_id":"c1","agentName":"A","agent":"A"}`)
	call.Context = map[string]any{"x": json.Number("1"), "chat_id": "c1"}
	result, err := k.pool.Tool("WF", "t.py", "greet").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"Success-ish","seen":{"name":"Al","agent_message":" hi ","chat_id":"c1","agent":"A",
		"agentName":"A","extra":{},"ctx":{"x":1,"chat_id":"c1"}}}`, string(result.Value))
	require.Empty(t, result.Set)
	require.Empty(t, result.Remove)
}

func TestWarmCallsStartNoProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 4}, "WF/tools/t.py", "import os\ndef pid(): return os.getpid()\n")
	first := k.value("pid", `{}`)
	for range 20 {
		require.Equal(t, first, k.value("pid", `{}`))
	}
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestTooLargeResultsAndArgumentsLeaveTheProcessAlone(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxFrame: 1 << 20}, "WF/tools/t.py", "def blow(n, pad=''): return 'x' * n\n")
	require.Contains(t, k.fails("blow", `{"n":104857600}`, events.CodeTooLarge), "over the limit of 1048576")
	require.Contains(t, k.fails("blow", `{"n":1,"pad":"`+strings.Repeat("x", 1<<20)+`"}`, events.CodeTooLarge), "arguments")
	require.Len(t, k.value("blow", `{"n":1000000}`), 1000002)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestContextChangesAreFoundHoweverTheyAreMade(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
async def change(context_variables):
    c = context_variables
    assert c.get("none", 5) == 5 and c.contains("same") and "same" in c and c["same"] == 1 and len(c) == 5
    c.set("new", {"a": {1}}); c.data["list"].append(2); c["flag"] = True; c.update(more=1); c.set("same", 1)
    assert c.remove("gone") is True and c.remove("never") is False
    del c["gone2"]
    return sorted(c.keys()) == sorted(c.to_dict())
def without(name): return name
def broken(context_variables): context_variables.data = None
`)
	call := newCall(t, "change", `{}`)
	call.Context = map[string]any{
		"same": json.Number("1"), "list": []any{json.Number("1")}, "flag": json.Number("1"), "gone": nil, "gone2": "x",
	}
	result, err := k.pool.Tool("WF", "t.py", "change").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"new":  map[string]any{"a": []any{json.Number("1")}},
		"list": []any{json.Number("1"), json.Number("2")}, "flag": true, "more": json.Number("1"),
	}, result.Set)
	require.Equal(t, []string{"gone", "gone2"}, result.Remove)

	call = newCall(t, "without", `{"name":"x"}`)
	call.Context = map[string]any{"same": true}
	result, err = k.pool.Tool("WF", "t.py", "without").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, `"x"`, string(result.Value))
	require.Contains(t, k.fails("broken", `{}`, events.CodeToolError), "context_variables.data")
}

func TestFieldsAreMappedWhenTheCallerDoesNotKnowTheSignature(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
def snake(module_agents, agentName=None, chat_id=None, app_id=None, agent="kept", context_variables=None, **rest):
    return [module_agents, agentName, chat_id, app_id, agent, rest, context_variables.get("x")]
`)
	call := newCall(t, "snake", `{"ModuleAgents":[1],"Other":2,"agent":null}`)
	call.MapArgs, call.Context = true, map[string]any{"x": true}
	result, err := k.pool.Tool("WF", "t.py", "snake").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, `[[1],"A","c1","app",null,{"Other":2},true]`, string(result.Value))
}

func TestWithModelOnlyItsFieldsMatchInAnotherSpelling(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
def refund(order, app_id, amount=0, note="", user_id="none"):
    return [order, app_id, amount, note, user_id]
`)
	for _, test := range []struct {
		args   string
		fields []string
		want   string
	}{
		{`{"Order":"A-1","Amount":5000,"note":"exact"}`, []string{"Order"}, `["A-1","app",0,"exact","none"]`},
		{`{"Order":"A-1","order":"A-2"}`, []string{"Order", "order"}, `["A-2","app",0,"","none"]`},
		{`{"order":"A-1","Amount":5}`, []string{}, `["A-1","app",0,"","none"]`},
		{`{"Order":"A-1","Amount":5}`, nil, `["A-1","app",5,"","none"]`},
		{`{"Order":"A-1","amount":1,"Amount":5}`, nil, `["A-1","app",1,"","none"]`},
	} {
		call := newCall(t, "refund", test.args)
		call.MapArgs, call.Fields, call.UserID = true, test.fields, ""
		result, err := k.pool.Tool("WF", "t.py", "refund").Invoke(t.Context(), call)
		require.NoError(t, err, test.args)
		require.JSONEq(t, test.want, string(result.Value), test.args)
	}
}

func TestExceptionsKeepTypeAndMessage(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import oneturn
def user(): raise oneturn.UserError("pick another date")
def retry(): raise oneturn.RetryableToolError("busy")
def key(): return {}["secret-key"]
def empty(): raise RuntimeError()
def inner(): return len(5)
async def late(): raise KeyError("k")
def slow(): raise TimeoutError("the oven is still cold")
def unprintable():
    class Odd(Exception):
        def __str__(self): raise RuntimeError
    raise Odd()
`)
	require.Equal(t, "pick another date", k.fails("user", `{}`, events.CodeUserError))
	require.Equal(t, "KeyError: 'secret-key'", k.fails("key", `{}`, events.CodeToolError))
	require.Equal(t, "RuntimeError", k.fails("empty", `{}`, events.CodeToolError))
	require.Contains(t, k.fails("inner", `{}`, events.CodeToolError), "has no len()")
	require.Equal(t, "KeyError: 'k'", k.fails("late", `{}`, events.CodeToolError))
	require.Equal(t, "the oven is still cold", k.fails("slow", `{}`, events.CodeTimeout))
	require.Equal(t, "Odd", k.fails("unprintable", `{}`, events.CodeToolError))
	require.Contains(t, k.fails("user", `{"x":1}`, events.CodeBadArgs), "unexpected keyword argument 'x'")
	require.Contains(t, k.fails("absent", `{}`, events.CodeToolError), "t.py has no function absent")

	_, err := k.invoke(t.Context(), "retry", `{}`)
	require.True(t, tools.IsRetryable(err))
	var exception *python.ExceptionError
	require.ErrorAs(t, err, &exception)
	require.Equal(t, "RetryableToolError", exception.Type)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
	require.Eventually(t, func() bool { return strings.Contains(k.log.String(), "Traceback (most recent call last)") },
		5*time.Second, 5*time.Millisecond)
	require.NotContains(t, k.log.String(), "oneturn host")
}

func TestCallMetadataReachesSyncAndAsyncTools(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn
def seen(c): return [c.app_id, c.chat_id, c.run_id, c.turn, c.idempotency_key, c.fencing_token, c.epoch, c.attempt, c.agent]
def now(): return seen(oneturn.call())
async def later(): return await asyncio.create_task(inner())
async def inner(): return seen(oneturn.call())
def awaits(): return inner()
`)
	want := `["app","c1","r1","turn-1","key-1",7,1,1,"A"]`
	for _, function := range []string{"now", "later", "awaits"} {
		require.JSONEq(t, want, k.value(function, `{}`))
	}
}
