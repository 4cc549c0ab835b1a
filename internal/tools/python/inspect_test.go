package python_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestInspectReadsSignaturesWithoutRunningTheCode(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import os, json as j, logging.handlers
from pandas.core import frame
from .near import helper, other as renamed
open(`+"'"+ran+"'"+`, "w")
try:
    import numpy
except (ImportError, ValueError):
    numpy = None
KEY = os.environ["API_KEY"]
if os.getenv("MODE", "x"):
    async def greet(first, /, name, role="x", *args, agent, mode=None, **extra):
        import requests
        return os.environ.get("LATE")
class Tool: pass
def gone(): pass
gone = 5
shown = lambda x: x
`, "WF/tools/star.py", "from x import *\ndef f(a): pass\n", "WF/tools/bad.py", "x = 1\ndef broken(:\n")
	files, err := python.Inspect(t.Context(), "", k.root, map[string][]byte{"WF/tools/t.py": nil, "WF/tools/star.py": nil, "WF/tools/bad.py": nil, "WF/none.py": nil})
	require.NoError(t, err)
	require.NoFileExists(t, ran)

	file := files["WF/tools/t.py"]
	for name, fn := range file.Functions {
		require.NotEmpty(t, fn.Input)
		fn.Input, fn.Output = nil, nil // see hint_schemas_test.go
		file.Functions[name] = fn
	}
	require.Equal(t, map[string]bindings.PyFunc{"greet": {Async: true, Line: 12, Params: []bindings.Param{
		{Name: "first", Kind: bindings.PositionalOnly},
		{Name: "name", Kind: bindings.Positional},
		{Name: "role", Kind: bindings.Positional, HasDefault: true},
		{Name: "args", Kind: bindings.VarPositional},
		{Name: "agent", Kind: bindings.KeywordOnly},
		{Name: "mode", Kind: bindings.KeywordOnly, HasDefault: true},
		{Name: "extra", Kind: bindings.VarKeyword},
	}}}, file.Functions)
	require.Equal(t, []string{"KEY", "Tool", "frame", "gone", "helper", "j", "logging", "numpy", "os", "renamed", "shown"}, file.Names)
	require.Equal(t, []string{"json", "logging", "os", "pandas", "requests"}, file.Imports)
	require.Equal(t, []string{"API_KEY", "LATE", "MODE"}, file.EnvNames)
	require.False(t, file.Dynamic)
	require.True(t, files["WF/tools/star.py"].Dynamic)
	require.Equal(t, 2, files["WF/tools/bad.py"].ErrorLine)
	require.NotEmpty(t, files["WF/tools/bad.py"].Error)
	require.NotEmpty(t, files["WF/none.py"].Error)

	_, err = python.Inspect(t.Context(), "", k.root, map[string][]byte{"../x.py": nil})
	require.ErrorContains(t, err, "does not lie in")
}

func TestInspectFindsFunctionsThatAskPeople(t *testing.T) {
	t.Parallel()
	files, err := python.Inspect(t.Context(), "", t.TempDir(), map[string][]byte{"t.py": []byte(`
from mozaiksai.core.workflow.outputs.ui_tools import use_ui_tool
import oneturn
from core.workflow import ui_tools
async def direct(a): return await use_ui_tool("X", {})
async def nested(a):
    async def inner(): return await ui_tools.use_ui_tool("X", {})
    return await inner()
async def through(a): return await helper(a)
async def helper(a): return await middle(a)
async def middle(a): return await oneturn.ask({})
def line(): return oneturn.request_input("?")
async def other(a): return await client.ask(a)
async def named(a): return use_ui_tool
class C:
    async def method(self): return await use_ui_tool("X", {})
async def gone(): await use_ui_tool("X", {})
gone = None
`)})
	require.NoError(t, err)
	require.Empty(t, files["t.py"].Error)
	var asks []string
	for name, fn := range files["t.py"].Functions {
		if fn.Asks {
			asks = append(asks, name)
		}
	}
	require.ElementsMatch(t, []string{"direct", "nested", "through", "helper", "middle", "line"}, asks)
}

func TestInspectTakesOneProcessForManyFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sources := make(map[string][]byte)
	for i := range 500 {
		sources[fmt.Sprintf("f%d.py", i)] = []byte("def f(a, b=1): pass\n")
	}
	files, err := python.Inspect(t.Context(), "", root, sources)
	require.NoError(t, err)
	require.Len(t, files, len(sources))
	require.Len(t, files["f499.py"].Functions["f"].Params, 2)
}

// TestInspectReadsTheBytesItIsGiven: not those that the disk has by then.
func TestInspectReadsTheBytesItIsGiven(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "def f(): pass\n")
	files, err := python.Inspect(t.Context(), "", k.root, map[string][]byte{
		"WF/tools/t.py": []byte("def broken(:\n"), "WF/tools/gone.py": []byte("# -*- coding: latin-1 -*-\ndef \xe4(): pass\n"), "WF/tools/empty.py": {},
	})
	require.NoError(t, err)
	require.Equal(t, 1, files["WF/tools/t.py"].ErrorLine)
	require.Contains(t, files["WF/tools/gone.py"].Functions, "ä")
	require.Empty(t, files["WF/tools/empty.py"].Error)
}

func TestMissingNamesModulesThatCannotBeFound(t *testing.T) {
	t.Parallel()
	missing, err := python.Missing(t.Context(), "", t.TempDir(), t.TempDir(), []string{"json", "no_such.thing", "sys", "asyncio.tasks", "no_such"})
	require.NoError(t, err)
	require.Equal(t, []string{"no_such"}, missing)
	_, err = python.Missing(t.Context(), "no-such-python", t.TempDir(), t.TempDir(), []string{"json"})
	require.ErrorContains(t, err, "no-such-python")
}

func TestNamedPipeIsNotReadAsAPythonFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe.py"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "good.py"), []byte("def f(): pass\n"), 0o600))
	files, err := python.Inspect(t.Context(), "", root, map[string][]byte{"pipe.py": nil, "good.py": nil})
	require.NoError(t, err)
	require.Equal(t, "it is not a regular file", files["pipe.py"].Error)
	require.Contains(t, files["good.py"].Functions, "f")
}

func TestInterpreterThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "python-slow")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nsleep 600\n"), 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, python.Probe(ctx, script, t.TempDir()), "did not answer in time")
}

func TestProbeDistinguishesAnInterpreterThatRuns(t *testing.T) {
	t.Parallel()
	require.NoError(t, python.Probe(t.Context(), "", t.TempDir()))
	old := filepath.Join(t.TempDir(), "python-old")
	require.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\necho '[3,8]'\n"), 0o700))
	for interpreter, want := range map[string]string{
		"no-such-python": "set with --python", "false": "exit status 1", "true": "read the answer", old: "need Python 3.9",
	} {
		require.ErrorContains(t, python.Probe(t.Context(), interpreter, t.TempDir()), want)
	}
}

func TestFilesThatNameTypesOverAndOverAreInspectedInTime(t *testing.T) {
	t.Parallel()
	var bases, typed, aliases, chain, fields strings.Builder
	typed.WriteString("from typing import TypedDict\nclass C25(TypedDict): a: int\n")
	aliases.WriteString("from typing import Union\n")
	fields.WriteString("from dataclasses import dataclass\n@dataclass\nclass A:\n")
	for i := range 25 {
		var names []string
		for j := i + 1; j < 26; j++ {
			names = append(names, fmt.Sprint("C", j))
		}
		fmt.Fprintf(&bases, "class C%d(%s): pass\n", i, strings.Join(names[:len(names)-1], ","))
		fmt.Fprintf(&typed, "class C%d(%s):\n  a%d: int\n", i, strings.Join(names, ","), i)
		fmt.Fprintf(&aliases, "A%d = Union[%s]\n", i, strings.Repeat(fmt.Sprintf("list[A%d],", i+1), 50))
	}
	for i := range 20_000 {
		fmt.Fprintf(&chain, "def f%d(): f%d()\n", i, i+1)
		fmt.Fprintf(&fields, "  f%d: int\n", i)
	}
	files, err := python.Inspect(t.Context(), "", t.TempDir(), map[string][]byte{
		"bases.py":   []byte(bases.String() + "def f(x: C0): pass\n"),
		"typed.py":   []byte(typed.String() + "def f(x: C0): pass\n"),
		"aliases.py": []byte(aliases.String() + "A25 = bytes\ndef f(x: A0): pass\n"),
		"chain.py":   []byte(chain.String() + "def f20000(): request_input()\n"),
		"fields.py":  []byte(fields.String() + "def f(x: A): pass\n"),
		"names.py":   []byte(strings.Repeat("a"+strings.Repeat(".b", 900)+"()\n", 200)),
	})
	require.NoError(t, err)
	for name, file := range files {
		require.Empty(t, file.Error, name)
	}
	require.True(t, files["chain.py"].Functions["f0"].Asks)
}
