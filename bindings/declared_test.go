package bindings_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func refuses() guards.Guard {
	return guards.Input(func(context.Context, *tools.Call) error { return errors.New("no") })
}

func TestDeclarationsInGoMeanTheSameAsManifests(t *testing.T) {
	t.Parallel()
	declared := bindings.Declaration{
		Workflow: "W", Agent: "A", Tool: "look", Effect: bindings.EffectNone, Schema: json.RawMessage(`{"type":"object"}`),
		Output: json.RawMessage(`{"type":"string"}`), Cache: bindings.Cache{TTL: time.Minute}, Guards: []guards.Guard{refuses()},
		Limits: target.Limits{Tool: target.Limit{Concurrency: 3}},
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{declared}})
	require.NoError(t, err)
	b := set.Bindings()[0]
	require.Equal(t, bindings.Cache{TTL: time.Minute, Scope: bindings.ScopeChat}, b.Cache)
	require.Equal(t, 3, b.Limits.Tool.Concurrency)
	require.Len(t, b.Guards, 1)
	require.JSONEq(t, `{"type":"object"}`, string(b.InputSchema))
	require.JSONEq(t, `{"type":"string"}`, string(b.OutputSchema))
	require.Nil(t, b.Output, "it describes only")

	again := declared
	again.Guards = []guards.Guard{refuses()}
	other, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{again}})
	require.NoError(t, err)
	require.Equal(t, set.Digest(), other.Digest(), "the digest holds no address")
}

func TestInvalidDeclarationsAreRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*bindings.Declaration){
		"set ToolOptions.Effect to oneturn.ReadOnly": func(d *bindings.Declaration) { d.Cache.TTL, d.Effect = time.Second, bindings.EffectKeyed },
		"invalid ToolOptions.CacheScope \"world\"":   func(d *bindings.Declaration) { d.Cache = bindings.Cache{TTL: time.Second, Scope: "world"} },
		"a guard is nil": func(d *bindings.Declaration) { d.Guards = []guards.Guard{nil} },
	} {
		d := bindings.Declaration{Workflow: "W", Agent: "A", Tool: "t"}
		change(&d)
		_, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{d}})
		require.ErrorContains(t, err, want)
	}
}

func TestSchemasOfCodeDescribeAndCheckOnlyOnRequest(t *testing.T) {
	t.Parallel()
	root := unpack(t, `
-- W/oneturn.yaml --
tools:
- {name: free, agent: A, kind: go}
- {name: held, agent: B, kind: go, input: inferred, output: inferred}
- {name: own, agent: C, kind: go, input: {type: object, properties: {b: {type: string}}}}
- {name: unknown, agent: D, kind: go, input: inferred}
`)
	in, out := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`), json.RawMessage(`{"type":"boolean"}`)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Registered: map[string]bindings.Registered{
		"free": {Input: in, Output: out}, "held": {Input: in, Output: out}, "own": {Input: in, Output: out},
	}})
	require.NoError(t, err)
	find := func(name string) *bindings.Binding {
		b, err := set.Tool("W", name)
		require.NoError(t, err)
		return b
	}
	free, held, own := find("free"), find("held"), find("own")
	require.Nil(t, free.Input)
	require.Nil(t, free.Output)
	require.JSONEq(t, string(in), string(free.InputSchema))
	require.JSONEq(t, string(out), string(free.OutputSchema))
	_, violations := held.Input.Check(map[string]any{})
	require.Len(t, violations, 1)
	_, _, violations = held.Output.Conform("text")
	require.Len(t, violations, 1)
	require.Equal(t, []string{"b"}, own.Input.Fields())
	require.JSONEq(t, `{"type":"object","properties":{"b":{"type":"string"}}}`, string(own.InputSchema))
	foreign, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	require.Empty(t, lines(foreign, diag.SeverityError), "another program knows its functions")
	require.Len(t, foreign.Bindings(), 4)

	_, err = set.Tool("W", "unknown")
	require.ErrorContains(t, err, "its go code declares none")
}
