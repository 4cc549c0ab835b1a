package python_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// hinted returns what its parameters are, as Python shows them.
const hinted = `
from __future__ import annotations
import datetime, decimal, enum, functools, pathlib, typing, uuid
from collections import namedtuple
from dataclasses import dataclass, field
from typing import *
class Color(enum.Enum):
    RED = "red"
    BLUE = 2
class Level(enum.IntEnum):
    LOW = 1
@dataclass
class Line:
    item: str
    price: decimal.Decimal
    color: Color = Color.RED
@dataclass(frozen=True)
class Order:
    id: uuid.UUID
    lines: list[Line]
    when: Optional[datetime.date] = None
    note: str = field(default="")
    total: int = field(init=False, default=7)
    def __post_init__(self):
        if not self.lines: raise ValueError("an order needs a line")
class Point(NamedTuple):
    x: float
    at: datetime.date = None
class Trip(TypedDict, total=False):
    start: datetime.datetime
    name: str
Day = NewType("Day", datetime.date)
class Own:
    pass
def show(value): return "%s %r" % (type(value).__name__, value)
def order(order: Order): return show(order)
def day(x: datetime.date): return show(x)
def moment(x: datetime.datetime): return show(x)
def clock(x: datetime.time): return show(x)
def span(x: datetime.timedelta): return show(x)
def key(x: uuid.UUID): return show(x)
def money(x: decimal.Decimal): return show(x)
def path(x: pathlib.Path): return [isinstance(x, pathlib.Path), str(x)]
def color(x: Color): return show(x)
def level(x: Level): return show(x)
def maybe(x: Optional[datetime.date] = None): return show(x)
def either(x: Union[str, int, Point]): return show(x)
def piped(x: "Color | None"): return show(x)
def colors(x: list[Color]): return show(x)
def days(x: Dict[str, datetime.date]): return show(x)
def keyed(x: dict[int, Color]): return show(x)
def tuples(x: tuple[int, Color]): return show(x)
def endless(x: Tuple[Color, ...]): return show(x)
def unique(x: set[int]): return show(x)
def point(x: Point): return show(x)
def trip(x: Trip): return show(x)
def newtype(x: Day): return show(x)
def noted(x: Annotated[Color, "which"]): return show(x)
def number(x: float): return show(x)
def text(x: str): return show(x)
def plain(x: Dict[str, Any], y: list = None, z: Own = None, w: Missing = None): return [show(x), show(y), show(z), show(w)]
def kept(x: Color, w: Missing): return show(x)
def rest(x: Color, **more: Color): return [show(x), show(more)]
async def asynchronous(x: Color): return show(x)
def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs): return f(*args, **kwargs)
    return wrapper
@logged
def wrapped(x: Color): return show(x)
`

func TestTypesThatHintsNameArriveAsSuch(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hinted)
	const id = "12345678-1234-5678-1234-567812345678"
	for _, c := range []struct{ function, args, want string }{
		{
			"order", `{"order":{"id":"` + id + `","lines":[{"item":"tea","price":"1.50","color":"BLUE","extra":1}],"when":"2026-08-01"}}`,
			"Order Order(id=UUID('" + id + "'), lines=[Line(item='tea', price=Decimal('1.50'), color=<Color.BLUE: 2>)], when=datetime.date(2026, 8, 1), note='', total=7)",
		},
		{"day", `{"x":"2026-08-01"}`, "date datetime.date(2026, 8, 1)"},
		{"moment", `{"x":"2026-08-01T12:30:00Z"}`, "datetime datetime.datetime(2026, 8, 1, 12, 30, tzinfo=datetime.timezone.utc)"},
		{"clock", `{"x":"12:30:00"}`, "time datetime.time(12, 30)"},
		{"span", `{"x":90}`, "timedelta datetime.timedelta(seconds=90)"},
		{"span", `{"x":"P1DT1H"}`, "timedelta datetime.timedelta(days=1, seconds=3600)"},
		{"key", `{"x":"` + id + `"}`, "UUID UUID('" + id + "')"},
		{"money", `{"x":1.5}`, "Decimal Decimal('1.5')"},
		{"color", `{"x":2}`, "Color <Color.BLUE: 2>"},
		{"color", `{"x":"RED"}`, "Color <Color.RED: 'red'>"},
		{"level", `{"x":1}`, "Level <Level.LOW: 1>"},
		{"maybe", `{"x":null}`, "NoneType None"},
		{"maybe", `{}`, "NoneType None"},
		{"maybe", `{"x":"2026-08-01"}`, "date datetime.date(2026, 8, 1)"},
		{"either", `{"x":"a"}`, "str 'a'"},
		{"either", `{"x":{"x":1}}`, "Point Point(x=1.0, at=None)"},
		{"colors", `{"x":["red",2]}`, "list [<Color.RED: 'red'>, <Color.BLUE: 2>]"},
		{"days", `{"x":{"a":"2026-08-01"}}`, "dict {'a': datetime.date(2026, 8, 1)}"},
		{"keyed", `{"x":{"1":"red"}}`, "dict {1: <Color.RED: 'red'>}"},
		{"tuples", `{"x":[1,"red"]}`, "tuple (1, <Color.RED: 'red'>)"},
		{"endless", `{"x":["red"]}`, "tuple (<Color.RED: 'red'>,)"},
		{"unique", `{"x":[1,1]}`, "set {1}"},
		{"point", `{"x":[1,"2026-08-01"]}`, "Point Point(x=1.0, at=datetime.date(2026, 8, 1))"},
		{"trip", `{"x":{"start":"2026-08-01T00:00:00"}}`, "dict {'start': datetime.datetime(2026, 8, 1, 0, 0)}"},
		{"newtype", `{"x":"2026-08-01"}`, "date datetime.date(2026, 8, 1)"},
		{"noted", `{"x":"red"}`, "Color <Color.RED: 'red'>"},
		{"number", `{"x":5}`, "float 5.0"},
		{"text", `{"x":"2026-08-01"}`, "str '2026-08-01'"},
		{"kept", `{"x":"red","w":1}`, "Color <Color.RED: 'red'>"},
		{"asynchronous", `{"x":"red"}`, "Color <Color.RED: 'red'>"},
		{"wrapped", `{"x":"red"}`, "Color <Color.RED: 'red'>"},
	} {
		require.Equal(t, quote(t, c.want), k.value(c.function, c.args), "%s %s", c.function, c.args)
	}
	require.JSONEq(t, `[true,"/tmp/a"]`, k.value("path", `{"x":"/tmp/a"}`))
	require.JSONEq(t, `["dict {'a': 1}","list [1]","dict {}","int 1"]`, k.value("plain", `{"x":{"a":1},"y":[1],"z":{},"w":1}`))
	require.JSONEq(t, `["Color <Color.RED: 'red'>","dict {'other': 'red'}"]`, k.value("rest", `{"x":"red","other":"red"}`))
}

func TestValueThatCannotBeBuiltIsAnErrorBeforeTheToolIsEntered(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hinted)
	for _, c := range []struct{ function, args, want string }{
		{"day", `{"x":"canary"}`, "parameter x: must be a date such as 2026-08-01"},
		{"day", `{"x":5}`, "parameter x: must be a date such as 2026-08-01"},
		{"color", `{"x":"canary"}`, `parameter x: must be one of "red", 2`},
		{"colors", `{"x":["red","canary"]}`, `parameter x/1: must be one of "red", 2`},
		{"order", `{"order":{"lines":[]}}`, "parameter order/id: is missing"},
		{"order", `{"order":{"id":"12345678-1234-5678-1234-567812345678","lines":[]}}`, "parameter order: cannot be made: an order needs a line"},
		{"order", `{"order":{"id":"12345678-1234-5678-1234-567812345678","lines":[{"item":"tea","price":"canary"}]}}`, "parameter order/lines/0/price: must be a decimal number"},
		{"order", `{"order":"canary"}`, "parameter order: must be an object"},
		{"maybe", `{"x":"canary"}`, "parameter x: must be a date"},
		{"either", `{"x":[]}`, "parameter x/x: is missing"},
		{"asynchronous", `{"x":"canary"}`, "parameter x: must be one of"},
	} {
		entered, ended := k.start(t.Context(), c.function, c.args)
		text := message(t, <-ended, events.CodeBadArgs)
		require.Contains(t, text, c.want)
		require.NotContains(t, text, "canary")
		require.False(t, isClosed(entered), c.function)
	}
}

func TestPydanticModelsOfHintsAreBuilt(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "python3", "-c", "import pydantic").Run() != nil {
		t.Log("python3 has no pydantic: nothing to build")
		return
	}
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import datetime
from typing import List, Optional
from pydantic import BaseModel, Field
from pydantic.v1 import BaseModel as Old
class Line(BaseModel):
    item: str
    pieces: int = Field(gt=0)
class Order(BaseModel):
    lines: List[Line]
    when: Optional[datetime.date] = None
class Past(Old):
    day: datetime.date
def order(x: Order): return repr(x)
def orders(x: List[Order]): return repr(x)
def past(x: Past): return repr(x)
`)
	require.Equal(t, quote(t, "Order(lines=[Line(item='tea', pieces=2)], when=datetime.date(2026, 8, 1))"),
		k.value("order", `{"x":{"lines":[{"item":"tea","pieces":2}],"when":"2026-08-01"}}`))
	require.Equal(t, quote(t, "[Order(lines=[], when=None)]"), k.value("orders", `{"x":[{"lines":[]}]}`))
	require.Equal(t, quote(t, "Past(day=datetime.date(2026, 8, 1))"), k.value("past", `{"x":{"day":"2026-08-01"}}`))
	text := k.fails("order", `{"x":{"lines":[{"item":"canary","pieces":0}]}}`, events.CodeBadArgs)
	require.Contains(t, text, "parameter x/lines/0/pieces: Input should be greater than 0")
	require.NotContains(t, text, "canary")
	require.Contains(t, k.fails("past", `{"x":{"day":"canary"}}`, events.CodeBadArgs), "parameter x/day: ")
}

func quote(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	require.NoError(t, err)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(data))
}

func TestHintsThatAreNotBuiltAreKnown(t *testing.T) {
	t.Parallel()
	functions := inspectOne(t, hinted+`
import elsewhere
class Foreign(elsewhere.Base): pass
class Child(Own): pass
class Cyclic(Cyclic): pass
def raw(a: Own, b: bytes, c: Optional[list["Child"]], context_variables: Own): pass
def built(a: Order, b: Foreign, c: Literal["bytes"], d: elsewhere.Other, e: List[Color], f: Cyclic, g: dict[str, Point] = None): pass
`)
	require.Equal(t, map[string]string{"a": "Own", "b": "bytes", "c": "Child"}, functions["raw"].Raw)
	require.Empty(t, functions["built"].Raw)
}
