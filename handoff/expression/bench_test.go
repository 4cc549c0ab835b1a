package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff/expression"
)

func BenchmarkEval(b *testing.B) {
	e, err := expression.Parse(`${plan} != None and ${choice} != "accepted" and len(${items}) > 0`)
	require.NoError(b, err)
	variables := map[string]any{"plan": map[string]any{}, "choice": "pending", "items": []any{1}}
	b.ReportAllocs()
	for b.Loop() {
		if holds, err := e.Eval(variables); err != nil || !holds {
			b.Fatal(holds, err)
		}
	}
}
