package python_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestResultsOfEveryKindBecomeJSON(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import dataclasses, datetime, decimal, enum, collections
class Color(enum.Enum):
    RED = "red"
@dataclasses.dataclass
class Point:
    x: int
    tags: set
class Model:
    def __init__(self): self.hidden = object()
    def model_dump(self): return {"when": datetime.datetime(2026, 1, 2, 3, 4, 5)}
class Old:
    def dict(self): return {"old": (1, 2)}
class Plain:
    def __init__(self): self.a = 1
async def all_of_them():
    return {"color": Color.RED, Color.RED: 1, "point": Point(1, {"b", "a"}), "model": Model(), "old": Old(), "plain": Plain(),
            "date": datetime.date(2026, 1, 2), "dec": decimal.Decimal("1.5"), "nan": float("nan"), 5: "five", None: "none",
            "named": collections.namedtuple("N", "a b")(1, 2), "bytes": "é".encode(), "lone": "a\ud800b", "big": 2**64}
def deep(n):
    value = []
    for _ in range(n - 1): value = [value]
    return value
def huge(): return {"a": [1, 10**100]}
def raising():
    class Bad:
        def model_dump(self): raise KeyError("inside")
    return Bad()
`)
	require.JSONEq(t, `{"color":"red","red":1,"point":{"x":1,"tags":["a","b"]},"model":{"when":"2026-01-02T03:04:05"},
		"old":{"old":[1,2]},"plain":{"a":1},"date":"2026-01-02","dec":"1.5","nan":null,"5":"five","None":"none","named":[1,2],
		"bytes":"é","lone":"a?b","big":18446744073709551616}`, k.value("all_of_them", `{}`))
	require.Equal(t, strings.Repeat("[", 60)+strings.Repeat("]", 60), k.value("deep", `{"n":60}`))
	require.Contains(t, k.fails("deep", `{"n":61}`, events.CodeToolError), "nested deeper than 60 levels")
	require.Contains(t, k.fails("huge", `{}`, events.CodeToolError), "result.a[1] is an integer of 333 bits")
	require.Contains(t, k.fails("raising", `{}`, events.CodeToolError), "inside")
}

func TestFloatsAreWrittenInTheRangeOfTheWire(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py",
		"def floats(): return [1e-320, -5e-324, 9.9e-309, 1e-308, 2.3e-308, 1.7976931348623157e308, {'x': -1e-310}]\n")
	value := k.value("floats", `{}`)
	require.Equal(t, `[0.0,0.0,0.0,1e-308,2.3e-308,1.7976931348623157e+308,{"x":0.0}]`, value)
	_, err := events.Decode([]byte(value))
	require.NoError(t, err, "readers of the event refuse it")
}

// results are values that json.dumps of Python refuses, or would lose something of.
const results = `
import array, collections, dataclasses, fractions, itertools, pathlib, sqlite3, sys, types, uuid
class Scalar:  # as numpy's
    dtype, shape = types.SimpleNamespace(kind="i", names=None), ()
    def __init__(self, value): self.value = value
    def tolist(self): return self.value
    item = tolist
class Array(Scalar):
    shape = (2,)
    def __repr__(self): return "[0 1 ... 1999]"
    def __init__(self, value, kind="i", names=None):
        self.value, self.dtype = value, types.SimpleNamespace(kind=kind, names=names)
    def astype(self, kind): return Array([str(v) for v in self.value])
class Slots:
    __slots__ = ("shown", "_hidden")
    def __init__(self): self.shown, self._hidden = 1, 2
class Empty: pass
def row():
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    return db.execute("select 1 as a, 'x' as b").fetchone()
def frame():
    try: import pandas
    except ImportError: return [[{"a": 1, "b": "x"}, {"a": 2, "b": None}], [{"at": "r", "a": 1}], {"x": 1}, [1, None], None]
    indexed = pandas.DataFrame({"a": [1]}, index=pandas.Index(["r"], name="at"))
    return [pandas.DataFrame({"a": [1, 2], "b": ["x", None]}), indexed, pandas.Series([1], index=["x"]),
            pandas.Series([1, None]), pandas.NaT]
def values():
    return {
        "map": map(str.upper, ["a", "b"]), "zip": zip([1], [2]), "keys": {"a": 1}.keys(), "range": range(3),
        "made": (n * n for n in [1, 2]), "chain": itertools.chain([1], [2]), "iter": iter([1]), "queue": collections.deque([1]),
        "count": Scalar(5), "all": Array([Scalar(0), Scalar(1)]), "times": Array([1], "M"), "rows": Array([(1, "x")], "V", ("a", "b")),
        "array": array.array("i", [1, 2]), "row": row(), "mixed": {1, "a"}, "path": pathlib.PurePath("a/b"), "id": uuid.UUID(int=1),
        "half": fractions.Fraction(1, 2), "slots": Slots(), "empty": Empty(), "error": ValueError("no seats"), "bytes": b"text",
        "by": {Scalar(1): 1, (1, "a"): 2, uuid.UUID(int=2): 3}, "frame": frame(),
    }
def refused(what):
    return {"a": [1, {
        "keys": {1: "number", "1": "text"}, "bytes": b"\xff", "inf": float("-inf"), "function": len, "class": int, "module": sys,
        "object": object(), "file": open("/dev/null"), "endless": itertools.count(), "key": {object(): 1}, "rows": row, "task": task(),
    }[what]]}
async def task(): pass
`

func TestResultsLoseNothing(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxFrame: 1 << 20}, "WF/tools/t.py", results)
	require.JSONEq(t, `{"map":["A","B"],"zip":[[1,2]],"keys":["a"],"range":[0,1,2],"made":[1,4],"chain":[1,2],"iter":[1],"queue":[1],
		"count":5,"all":[0,1],"times":["1"],"rows":[{"a":1,"b":"x"}],"array":[1,2],"row":{"a":1,"b":"x"},"mixed":[1,"a"],"path":"a/b",
		"id":"00000000-0000-0000-0000-000000000001","half":"1/2","slots":{"shown":1},"empty":{},"error":"no seats","bytes":"text",
		"by":{"1":1,"(1, a)":2,"00000000-0000-0000-0000-000000000002":3},
		"frame":[[{"a":1,"b":"x"},{"a":2,"b":null}],[{"at":"r","a":1}],{"x":1},[1,null],null]}`, k.value("values", `{}`))
}

func TestResultsThatJSONCannotHoldAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxFrame: 1 << 20}, "WF/tools/t.py", results)
	for what, want := range map[string]string{
		"keys": "result.a[1] has two keys, 1 and '1', that are the same in JSON", "bytes": "result.a[1] is 1 bytes that are not UTF-8 text",
		"inf": "result.a[1] is -inf", "function": "result.a[1] is a builtin_function_or_method", "class": "result.a[1] is a type",
		"module": "result.a[1] is a module", "object": "result.a[1] is an object", "file": "result.a[1] is a _io.TextIOWrapper",
		"endless": "result.a[1][524285] is member 524289", "key": "result.a[1] has a key that is an object",
		"rows": "result.a[1] is a function", "task": "result.a[1] is a coroutine",
	} {
		require.Contains(t, k.fails("refused", `{"what":"`+what+`"}`, events.CodeToolError), want)
	}
}

func TestResultsThatRepeatThemselvesAreBoundedBeforeTheyAreWritten(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxFrame: 1 << 20, MaxMemory: 2 << 30}, "WF/tools/t.py", `
def texts(): return ["x" * 1000000] * 500000
def names(): return [{"x" * 1000000: 1}] * 500000
def keys():
    key = ("a",)
    for _ in range(20): key = (key, key)
    return {key: 1}
def deep():
    key = ("a",)
    for _ in range(100): key = (key,)
    return {key: 1}
def shared():
    value = [1]
    for _ in range(40): value = [value, value]
    return value
`)
	for _, function := range []string{"texts", "names"} {
		require.Contains(t, k.fails(function, `{}`, events.CodeTooLarge), "over the limit of 1048576; store it and return a reference")
	}
	require.Contains(t, k.fails("keys", `{}`, events.CodeTooLarge), "over the limit of 1048576")
	require.Contains(t, k.fails("deep", `{}`, events.CodeToolError), "result has a key that is nested deeper than 60 levels")
	require.Contains(t, k.fails("shared", `{}`, events.CodeToolError), "is member 524289, more than a result holds")
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestWhatCannotBeShownNamesTheFix(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import oneturn
def ask(): oneturn.ask("Q", object())
def schema(): oneturn.ask("Q", {}, schema={"x": object()})
def text(): oneturn.ask("Q", "text")
def step(): return oneturn.step("one", object)
def result(): return object()
def context(context_variables): context_variables.set("x", object())
def percent(): oneturn.progress(10 ** 400, "x" * 5000)
`)
	for function, want := range map[string]string{
		"ask":     "payload is an object, which has no public attributes; pass its data",
		"schema":  "schema.x is an object, which has no public attributes; pass its data",
		"text":    "the payload is a str; it must be a dict",
		"step":    "step one is an object, which has no public attributes; return its data",
		"result":  "result is an object, which has no public attributes; return its data",
		"context": "context_variables.x is an object, which has no public attributes; set its data",
	} {
		call, d := newCall(t, function, `{}`), newHost()
		call.Host, call.Context = d, map[string]any{}
		_, err := k.pool.Tool("WF", "t.py", function).Invoke(t.Context(), call)
		require.Equal(t, want, message(t, err, events.CodeToolError), function)
	}
	call, d := newCall(t, "percent", `{}`), newHost()
	call.Host = d
	_, err := k.pool.Tool("WF", "t.py", "percent").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, []tools.Progress{{Percent: -1, Message: strings.Repeat("x", 1000)}}, d.progress)
}

// TestSecretsOfObjectsStayInTheProcess: those that their type names as such, and what an attribute
// with an underscore holds, in results, context variables, questions and steps.
func TestSecretsOfObjectsStayInTheProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import dataclasses, oneturn
class SecretStr:  # as in pydantic
    def __init__(self, value): self._secret_value = value
    def get_secret_value(self): return self._secret_value
class Account:
    def __init__(self): self.name, self.token = "ada", SecretStr("canary-1")
    def model_dump(self): return {"name": self.name, "token": self.token}
class Client:
    def __init__(self): self.url, self._password, self.__inner = "https://a.example", "canary-2", "canary-3"
@dataclasses.dataclass
class Session:
    user: str
    _cookie: str = "canary-4"
class Hidden:
    def __init__(self): self._password = "canary-5"
def shown(): return {"account": Account(), "list": [Client(), Session("ada")], "_id": "a key of the data stays"}
def who(context_variables):
    context_variables.set("account", Account())
    oneturn.show("Card", {"client": Client()})
    return oneturn.step("log in", shown)
def hidden(): return {"client": Hidden()}
`)
	const want = `{"account":{"name":"ada","token":"**********"},"list":[{"url":"https://a.example"},{"user":"ada"}],"_id":"a key of the data stays"}`
	call, d := newCall(t, "who", `{}`), newHost()
	call.Host, call.Context = d, map[string]any{}
	result, err := k.pool.Tool("WF", "t.py", "who").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.JSONEq(t, want, string(result.Value))
	require.Equal(t, map[string]any{"account": map[string]any{"name": "ada", "token": "**********"}}, result.Set)
	require.JSONEq(t, `{"client":{"url":"https://a.example"}}`, string(d.surfaces[0].Payload))
	require.JSONEq(t, want, string(d.steps["log in"]))
	require.Contains(t, k.fails("hidden", `{}`, events.CodeToolError), "result.client is a Hidden, which has no public attributes")
	require.NotContains(t, k.log.String(), "canary")
}
