package python_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// typesOfHints is what the hints below name.
const typesOfHints = `
from __future__ import annotations
import datetime, typing, typing as t
from dataclasses import dataclass, field
from enum import Enum
from typing import *
from typing import Optional as Maybe
from elsewhere import List as Foreign, Set
Alias = Union[str, int]
Id = NewType("Id", int)
Loop = Optional["Loop"]
class Colour(Enum):
    RED = 1
class Base(TypedDict):
    id: int
class Order(Base, total=False):
    item: Required[Annotated[str, "what is ordered"]]
    count: int
class Node(TypedDict):
    next: Optional[Node]
@dataclass(frozen=True)
class Point:
    kind: ClassVar[str] = "point"
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)
    z: int = field(kw_only=True)
class Odd: pass
`

func TestTypeHintsBecomeJSONSchemas(t *testing.T) {
	t.Parallel()
	hints := map[string]string{
		"str": `{"type":"string"}`, "int": `{"type":"integer"}`, "float": `{"type":"number"}`, "bool": `{"type":"boolean"}`,
		"None": `{"type":"null"}`, "list": `{"type":"array"}`, "dict": `{"type":"object"}`, "Any": `{}`, "object": `{}`, "bytes": `{}`,
		"datetime.datetime": `{}`, "Colour": `{}`, "Odd": `{}`, "Foreign[str]": `{}`, "Unknown[str]": `{}`, "Set[str]": `{}`,
		"list[str]":                   `{"type":"array","items":{"type":"string"}}`,
		"typing.List[int]":            `{"type":"array","items":{"type":"integer"}}`,
		"Sequence[Any]":               `{"type":"array"}`,
		"dict[str, int]":              `{"type":"object","additionalProperties":{"type":"integer"}}`,
		"t.Mapping[str, t.Any]":       `{"type":"object"}`,
		"tuple[int, str]":             `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2}`,
		"tuple[int, ...]":             `{"type":"array","items":{"type":"integer"}}`,
		"Optional[str]":               `{"type":["string","null"]}`,
		"Maybe[str]":                  `{"type":["string","null"]}`,
		"str | None":                  `{"type":["string","null"]}`,
		"Union[str, list[int], None]": `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}},{"type":"null"}]}`,
		"int | Any":                   `{}`,
		"Optional[Union[str, str]]":   `{"type":["string","null"]}`,
		`Literal["a", 1, None, True]`: `{"enum":["a",1,null,true]}`,
		`Literal[Colour.RED]`:         `{}`,
		`Annotated[int, "how many"]`:  `{"type":"integer","description":"how many"}`,
		`Annotated[int, Field(gt=0, description="how many")]`: `{"type":"integer","description":"how many"}`,
		`"list['Point']"`: `{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"},` +
			`"tags":{"type":"array","items":{"type":"string"}},"z":{"type":"integer"}},"required":["x","z"]}}`,
		"Alias": `{"type":["string","integer"]}`, "Id": `{"type":"integer"}`, "Loop": `{}`,
		"Order":          `{"type":"object","properties":{"id":{"type":"integer"},"item":{"type":"string","description":"what is ordered"},"count":{"type":"integer"}},"required":["id","item"]}`,
		"Node":           `{"type":"object","properties":{"next":{"type":["object","null"]}},"required":["next"]}`,
		`"not a ( type"`: `{}`, "print('ran')": `{}`, "lambda: 1": `{}`,
	}
	var code strings.Builder
	code.WriteString(typesOfHints)
	names := map[string]string{}
	for hint := range hints {
		names[hint] = fmt.Sprintf("f%d", len(names))
		fmt.Fprintf(&code, "def %s(x: %s) -> %s: pass\n", names[hint], hint, hint)
	}
	functions := inspectOne(t, code.String())
	for hint, want := range hints {
		fn := functions[names[hint]]
		require.JSONEq(t, `{"type":"object","properties":{"x":`+want+`},"required":["x"],"additionalProperties":false}`, string(fn.Input), hint)
		if want == "{}" {
			require.Nil(t, fn.Output, hint)
			continue
		}
		require.JSONEq(t, want, string(fn.Output), hint)
		_, err := model.CompileValue("output", fn.Output)
		require.NoError(t, err, hint)
		_, err = model.CompileSchema("input", fn.Input)
		require.NoError(t, err, hint)
	}
}

func TestParametersBecomeTheSchemaOfArguments(t *testing.T) {
	t.Parallel()
	for signature, want := range map[string]string{
		"":           `{"type":"object","properties":{},"additionalProperties":false}`,
		"a, b=1":     `{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`,
		"**rest":     `{"type":"object","properties":{}}`,
		"**rest:int": `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`,
		"self, first, /, name: str = 'x', *args: int, deep: float = 0.5, context_variables": `{"type":"object",` +
			`"properties":{"name":{"type":"string","default":"x"},"deep":{"type":"number","default":0.5}},"additionalProperties":false}`,
		"name: str = None, when: int = later()":  `{"type":"object","properties":{"name":{"type":["string","null"]},"when":{"type":"integer"}},"additionalProperties":false}`,
		"big: int = 10**400, far: float = 1e999": `{"type":"object","properties":{"big":{"type":"integer"},"far":{"type":"number"}},"additionalProperties":false}`,
	} {
		fn := inspectOne(t, "async def f("+signature+"): pass\n")["f"]
		require.JSONEq(t, want, string(fn.Input), signature)
	}
}

// TestHostileHintsCostLittle has types that would be endless, deep or huge.
func TestHostileHintsCostLittle(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("from typing import Union, TypedDict\nA0 = str\n")
	for i := range 60 {
		fmt.Fprintf(&bomb, "A%d = dict[str, tuple[A%d, A%d]]\n", i+1, i, i)
	}
	bomb.WriteString("class R(R, TypedDict): x: R\ndef f(a: A60, r: R, l: " + strings.Repeat("list[", 60) + "int" + strings.Repeat("]", 60) + "): pass\n")
	for i := range 200 {
		fmt.Fprintf(&bomb, "def h%d(a: A60): pass\n", i)
	}
	functions := inspectOne(t, bomb.String())
	require.Len(t, functions, 201)
	size := 0
	for _, fn := range functions {
		size += len(fn.Input)
	}
	require.Less(t, size, 2<<20)
}

// inspectOne gives the functions of one file.
func inspectOne(t *testing.T, code string) map[string]bindings.PyFunc {
	t.Helper()
	files, err := python.Inspect(t.Context(), "", t.TempDir(), map[string][]byte{"t.py": []byte(code)})
	require.NoError(t, err)
	require.Empty(t, files["t.py"].Error)
	return files["t.py"].Functions
}
