package python_test

import (
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

const costly = `
import dataclasses, datetime, decimal, enum, typing, uuid
from typing import *
@dataclasses.dataclass
class And:
    items: "list[Filter]"
@dataclasses.dataclass
class Or:
    items: "list[Filter]"
@dataclasses.dataclass
class Leaf:
    field: str
    day: datetime.date
Filter = Union[And, Or, Leaf]
@dataclasses.dataclass
class Item:
    name: str = ""
    due: Optional[datetime.date] = None
@dataclasses.dataclass(frozen=True)
class Pair:
    a: int
    b: int
@dataclasses.dataclass
class Card:
    kind: Literal["card"]
    number: str
    until: datetime.date
@dataclasses.dataclass
class Cash:
    kind: Literal["cash"]
    number: str = ""
    until: str = ""
@dataclasses.dataclass
class Options:
    loud: bool = False
@dataclasses.dataclass
class Parcel:
    weight: int
class Name(TypedDict):
    first: str
    born: datetime.date
class Flags(enum.IntFlag):
    A = 1
def show(value): return "%s %r" % (type(value).__name__, value)
def search(x: Filter): return show(x)
def mixed(x: Union[Dict[str, "And"], List[And], Or]): return show(x)
def items(x: List[Item]): return len(x)
def pairs(x: Set[Pair]): return len(x)
def numbers(x: Set[int]): return len(x)
def frozen(x: FrozenSet[int]): return len(x)
def ids(x: Set[uuid.UUID]): return len(x)
def sums(x: Set[decimal.Decimal]): return len(x)
def keyed(x: Dict[int, str]): return len(x)
def prices(x: Dict[decimal.Decimal, int]): return len(x)
def sets(x: List[Set[int]]): return len(x)
def floats(x: List[float]): return sum(x)
def pay(x: Union[Card, Cash]): return show(x)
def send(x: Union[Options, Parcel, Name]): return show(x)
def span(x: datetime.timedelta): return show(x)
def day(x: datetime.date): return show(x)
def moment(x: datetime.datetime): return show(x)
def clock(x: datetime.time): return show(x)
def exact(x: decimal.Decimal): return show(x)
def flags(x: Flags): return show(x)
Wide = dataclasses.make_dataclass("Wide", [("f%d" % i, Optional[datetime.date], None) for i in range(40)])
def wide(x: List[Wide]): return len(x)
def two(x: List[Wide], y: List[Wide]): return [len(x), len(y)]
`

// nested puts a filter into others.
func nested(depth int, leaf string) string {
	return strings.Repeat(`{"items":[`, depth) + leaf + strings.Repeat(`]}`, depth)
}

// colliding returns numbers all of which have the same hash in Python, each by a format.
func colliding(format string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, new(big.Int).Mul(big.NewInt(int64(i)), big.NewInt(1<<61-1)))
	}
	return strings.Join(parts, ",")
}

// ordinary returns large numbers, as ids are.
func ordinary(n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strconv.Itoa(1<<62 + i)
	}
	return strings.Join(parts, ",")
}

func TestAlternativesOfAUnionDoNotBuildTheSameValueAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", costly)
	const depth = 28
	right := `{"field":"a","day":"2026-01-01"}`
	require.Contains(t, k.value("search", `{"x":`+nested(depth, right)+`}`), "Leaf(field='a', day=datetime.date(2026, 1, 1))")
	wrong := nested(depth, `{"field":"a","day":"?"}`)
	require.Equal(t, "parameter x"+strings.Repeat("/items/0", depth)+"/day: must be a date such as 2026-08-01",
		k.fails("search", `{"x":`+wrong+`}`, events.CodeBadArgs))
	require.Contains(t, k.fails("mixed", `{"x":[`+wrong+`]}`, events.CodeBadArgs), "/day: must be a date")
	require.Contains(t, k.fails("mixed", `{"x":{"a":`+wrong+`}}`, events.CodeBadArgs), "/day: must be a date")
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestCallsContinueWhileCostlyArgumentsAreBuilt(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{LoadTimeout: 10 * time.Second, Grace: time.Second}, "WF/tools/t.py",
		costly+hostile+"async def asearch(x: Filter): pass\n")
	k.value("asearch", `{"x":`+nested(1, `{"field":"a","day":"2026-01-01"}`)+`}`)
	dir := t.TempDir() + "/"
	running := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "gate", `{"path":"`+dir+`"}`)
		running <- err
	}()
	waitForFiles(t, dir+"*", 1)
	k.fails("asearch", `{"x":`+nested(24, `{"field":"a","day":"?"}`)+`}`, events.CodeBadArgs)
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-running)
	require.Equal(t, uint64(0), k.pool.Stats().Died)
}

func TestValuesThatAreBuiltForACallHaveABound(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", costly)
	many := func(n int) string { return `[` + strings.Repeat(`{},`, n) + `{}]` }
	require.Equal(t, "99001", k.value("items", `{"x":`+many(99_000)+`}`), "about as many as an event has values")
	const want = "is more than the 200000 values that are built for a call: pass less, or take it without a type hint"
	require.Contains(t, k.fails("wide", `{"x":`+many(40_000)+`}`, events.CodeBadArgs), want)
	require.Contains(t, k.fails("two", `{"x":`+many(15_000)+`,"y":`+many(15_000)+`}`, events.CodeBadArgs), want)
	require.Equal(t, "[1,1]", k.value("two", `{"x":[{}],"y":[{}]}`), "each call has its own")
	require.Equal(t, "90001.0", k.value("floats", `{"x":[`+strings.Repeat("1,", 90_000)+`1]}`), "numbers cost nothing")
}

func TestValuesWhoseHashesCollideAreRefused(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", costly)
	const n = 20_000
	for function, x := range map[string]string{
		"numbers": `[` + colliding("%d", n) + `]`,
		"frozen":  `[` + colliding("%d", n) + `]`,
		"sums":    `[` + colliding(`"%d"`, n) + `]`,
		"ids":     `[` + colliding(`"%032x"`, n) + `]`,
		"pairs":   `[` + colliding(`{"a":%d,"b":0}`, n) + `]`,
		"keyed":   `{` + colliding(`"%d":""`, n) + `}`,
		"prices":  `{` + colliding(`"%d":1`, n) + `}`,
		"sets":    `[` + strings.Repeat(`[`+colliding("%d", 2000)+`],`, 40) + `[]]`,
	} {
		require.Contains(t, k.fails(function, `{"x":`+x+`}`, events.CodeBadArgs), "whose hashes collide", function)
	}
	require.Equal(t, "90000", k.value("numbers", `{"x":[`+ordinary(90_000)+`]}`))
}

func TestUnionsChooseByKeysAndLiterals(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", costly)
	for _, c := range []struct{ function, args, want string }{
		{"pay", `{"x":{"kind":"cash","number":"1"}}`, "Cash Cash(kind='cash', number='1', until='')"},
		{"pay", `{"x":{"kind":"card","number":"1","until":"2026-01-01"}}`, "Card Card(kind='card', number='1', until=datetime.date(2026, 1, 1))"},
		{"send", `{"x":{"weight":3}}`, "Parcel Parcel(weight=3)"},
		{"send", `{"x":{"loud":true}}`, "Options Options(loud=True)"},
		{"send", `{"x":{}}`, "Options Options(loud=False)"},
		{"send", `{"x":{"first":"Ada","born":"1815-12-10"}}`, "dict {'born': datetime.date(1815, 12, 10), 'first': 'Ada'}"},
	} {
		require.Equal(t, quote(t, c.want), k.value(c.function, c.args), "%s %s", c.function, c.args)
	}
	require.Equal(t, "parameter x/until: must be a date such as 2026-08-01",
		k.fails("pay", `{"x":{"kind":"card","number":"1","until":"?"}}`, events.CodeBadArgs), "not the other alternative, which takes any text")
	require.Equal(t, `parameter x/kind: must be one of "card" or must be one of "cash"`, k.fails("pay", `{"x":{"kind":"cheque"}}`, events.CodeBadArgs))
}

func TestNumbersThatOverflowAreBadArguments(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", costly)
	nines := strings.Repeat("9", 400)
	for _, c := range [][2]string{
		{"span", `1e300`},
		{"span", `-1e300`},
		{"span", `"P` + nines + `D"`},
		{"span", `"P99999999999999D"`},
		{"span", `"PT` + nines + `.5S"`},
		{"day", `"` + nines + `-01-01"`},
		{"day", `"0000-00-00"`},
		{"moment", `"9999-12-31T23:59:59+99:99"`},
		{"clock", `"` + nines + `"`},
		{"exact", `"1e99999999999999999999"`},
		{"exact", `"NaN"`},
		{"exact", `"Infinity"`},
		{"flags", `1e300`},
		{"keyed", `{"` + strings.Repeat("9", 100_000) + `":""}`},
	} {
		entered, ended := k.start(t.Context(), c[0], `{"x":`+c[1]+`}`)
		require.Contains(t, message(t, <-ended, events.CodeBadArgs), "parameter x", c[0])
		require.False(t, isClosed(entered), c[0])
	}
	require.NotContains(t, k.log.String(), "Traceback")
}

func TestPydanticModelsTakeBoundedWork(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "python3", "-c", "import pydantic").Run() != nil {
		t.Log("python3 has no pydantic: nothing to build")
		return
	}
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import datetime, uuid
from typing import *
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypeAliasType
class And(BaseModel):
    items: "List[Filter]"
class Or(BaseModel):
    items: "List[Filter]"
class Leaf(BaseModel):
    field: str
    day: datetime.date
Filter = Union[And, Or, Leaf]
class Cat(BaseModel):
    kind: Literal["cat"]
    kids: "List[Pet]" = []
class Dog(BaseModel):
    kind: Literal["dog"]
    kids: "List[Pet]" = []
Pet = Annotated[Union[Cat, Dog], Field(discriminator="kind")]
class Root(RootModel[List[Filter]]):
    pass
T = TypeVar("T")
class Page(BaseModel, Generic[T]):
    entries: List[T]
Nested = TypeAliasType("Nested", "Union[List[Nested], Tuple[Nested, ...], datetime.date]")
class Lists(BaseModel):
    x: Nested
class Sets(BaseModel):
    numbers: Set[int] = set()
    ids: Set[uuid.UUID] = set()
    keys: Dict[int, int] = {}
def search(x: Filter): return "found"
def root(x: Root): return "found"
def lists(x: Lists): return "found"
def alias(x: Nested): return repr(x)
def page(x: Page[Filter]): return "found"
def pet(x: Pet): return "fed"
def sets(x: Sets): return len(x.numbers)
`)
	right, wrong := `{"field":"a","day":"2026-01-01"}`, `{"field":"a","day":"?"}`
	require.Equal(t, `"found"`, k.value("search", `{"x":`+nested(8, right)+`}`))
	require.Contains(t, k.fails("search", `{"x":`+nested(8, wrong)+`}`, events.CodeBadArgs), "parameter x/items/0")
	const discriminator = "give the unions of the model a discriminator"
	for _, leaf := range []string{right, wrong} {
		require.Contains(t, k.fails("search", `{"x":`+nested(28, leaf)+`}`, events.CodeBadArgs), discriminator)
	}
	require.Equal(t, `"found"`, k.value("root", `{"x":[`+nested(8, right)+`]}`))
	require.Equal(t, `"found"`, k.value("page", `{"x":{"entries":[`+nested(8, right)+`]}}`))
	require.Contains(t, k.fails("root", `{"x":[`+nested(26, wrong)+`]}`, events.CodeBadArgs), discriminator)
	require.Contains(t, k.fails("page", `{"x":{"entries":[`+nested(26, wrong)+`]}}`, events.CodeBadArgs), discriminator)
	deep := func(n int, leaf string) string { return strings.Repeat("[", n) + leaf + strings.Repeat("]", n) }
	require.Equal(t, `"found"`, k.value("lists", `{"x":{"x":`+deep(4, `"2026-01-01"`)+`}}`))
	require.Contains(t, k.fails("lists", `{"x":{"x":`+deep(50, `"?"`)+`}}`, events.CodeBadArgs), discriminator)
	require.Equal(t, `"[[datetime.date(2026, 1, 1)]]"`, k.value("alias", `{"x":`+deep(2, `"2026-01-01"`)+`}`), "an alias may name itself")
	require.Contains(t, k.fails("alias", `{"x":`+deep(50, `"?"`)+`}`, events.CodeBadArgs), "parameter x/0/0")
	pets := strings.Repeat(`{"kind":"cat","kids":[{"kind":"dog","kids":[`, 13) + strings.Repeat(`]}]}`, 13)
	require.Equal(t, `"fed"`, k.value("pet", `{"x":`+pets+`}`))
	for _, x := range []string{
		`{"numbers":[` + colliding("%d", 20_000) + `]}`, `{"ids":[` + colliding(`"%032x"`, 20_000) + `]}`, `{"keys":{` + colliding(`"%d":1`, 20_000) + `}}`,
	} {
		require.Contains(t, k.fails("sets", `{"x":`+x+`}`, events.CodeBadArgs), "whose hashes collide")
	}
	require.Equal(t, "90000", k.value("sets", `{"x":{"numbers":[`+ordinary(90_000)+`]}}`))
}
