package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

func TestChecksOfManyValuesShareABudget(t *testing.T) {
	t.Parallel()
	m, err := model.CompileSchema("Order", json.RawMessage(`{"type":"object","required":["count"],
		"properties":{"count":{"type":"integer","minimum":1},"items":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}}`))
	require.NoError(t, err)
	good := map[string]any{"count": json.Number("2"), "items": []any{"a", "b"}}
	steps := 1000
	for _, v := range []any{
		good,
		map[string]any{},
		map[string]any{"count": "none"},
		"text", nil,
		map[string]any{"count": json.Number("0"), "items": json.Number("1")},
		map[string]any{"count": json.Number("1"), "items": []any{"a", "a"}},
	} {
		_, want := m.Check(v)
		before := steps
		got, ok := m.ViolationsWithin(v, &steps)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.LessOrEqual(t, steps, before)
	}
	require.Less(t, steps, 1000)

	few := 3
	_, ok := m.ViolationsWithin(good, &few)
	require.False(t, ok, "four values cannot be visited in three steps")
	require.LessOrEqual(t, few, 0)
	_, ok = m.ViolationsWithin(map[string]any{}, &few)
	require.False(t, ok, "nothing is left")

	for enough := 1; ; enough++ {
		steps := enough
		if violations, ok := m.ViolationsWithin(good, &steps); ok {
			require.Empty(t, violations)
			require.GreaterOrEqual(t, steps, 0)
			break
		}
		require.Less(t, enough, 100)
	}
}
