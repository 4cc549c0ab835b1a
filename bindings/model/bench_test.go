package model_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

// flat is an object of 12 fields and about 1 KiB that needs no coercion.
func flat(b *testing.B) (m *model.Model, v any) {
	b.Helper()
	var fields []string
	var data []string
	for i, spec := range []string{
		`{"type":"str"}`, `{"type":"str","min":1}`, `{"type":"int"}`, `{"type":"bool"}`, `{"type":"optional_str"}`,
		`{"type":"literal","values":["lo","mid","hi"]}`, `{"type":"str"}`, `{"type":"str"}`, `{"type":"list","items":"str"}`,
		`{"type":"int","min":0}`, `{"type":"str"}`, `{"type":"str"}`,
	} {
		name := "field_" + string(rune('a'+i))
		fields = append(fields, name, spec)
		value := `"` + strings.Repeat("x", 110) + `"`
		switch i {
		case 2, 9:
			value = "12345"
		case 3:
			value = "true"
		case 5:
			value = `"mid"`
		case 8:
			value = `["one","two","three"]`
		}
		data = append(data, `"`+name+`":`+value)
	}
	m = compileOne(b, "M", define(b, "M", fields...))
	return m, tree(b, "{"+strings.Join(data, ",")+"}")
}

func BenchmarkCheckFlat(b *testing.B) {
	m, v := flat(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, violations := m.Check(v); len(violations) > 0 {
			b.Fatal(violations)
		}
	}
}

// nested is a plan of 20 steps; every second number has to be coerced if bend is set.
func nested(b *testing.B, bend bool) (m *model.Model, v any) {
	b.Helper()
	m = compileOne(b, "Plan",
		define(b, "Plan", "goal", `{"type":"str"}`, "steps", `{"type":"list","items":"Step"}`),
		define(b, "Step", "name", `{"type":"str"}`, "n", `{"type":"int"}`, "tool", `{"type":"union","variants":["Tool","null"]}`),
		define(b, "Tool", "id", `{"type":"str"}`, "kind", `{"type":"literal","values":["a","b"]}`))
	number := "1"
	if bend {
		number = `"1"`
	}
	step := `{"name":"step","n":` + number + `,"tool":{"id":"t","kind":"b"}}`
	return m, tree(b, `{"goal":"g","steps":[`+strings.TrimSuffix(strings.Repeat(step+",", 20), ",")+`]}`)
}

func BenchmarkCheckNested(b *testing.B) {
	for name, bend := range map[string]bool{"as is": false, "coerced": true} {
		b.Run(name, func(b *testing.B) {
			m, v := nested(b, bend)
			b.ReportAllocs()
			for b.Loop() {
				if _, violations := m.Check(v); len(violations) > 0 {
					b.Fatal(violations)
				}
			}
		})
	}
}

func TestCheckSharesWhatItDoesNotChange(t *testing.T) {
	t.Parallel()
	m := compileOne(t, "M",
		define(t, "M", "same", `{"type":"list","items":"N"}`, "other", `{"type":"N"}`),
		define(t, "N", "n", `{"type":"int"}`))
	in, ok := tree(t, `{"same":[{"n":1}],"other":{"n":"1"}}`).(map[string]any)
	require.True(t, ok)
	out, violations := m.Check(in)
	require.Empty(t, violations)
	shared, ok := out["same"].([]any)
	require.True(t, ok)
	original, ok := in["same"].([]any)
	require.True(t, ok)
	require.Same(t, &original[0], &shared[0])
	out["new"] = true
	require.NotContains(t, in, "new")
}
