package model_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
)

func TestPatternThatCompilesToMillionsOfStepsIsNotCompiled(t *testing.T) { //nolint:paralleltest // what other tests allocate would count
	large := "^(" + strings.Repeat("a{0,1000}", 55) + ")$"
	for source, reason := range map[string]string{
		"^[a-z]{1,64}$":                         "",
		"^(a{30}|b+){10,20}$":                   "",
		large:                                   "repeats too much",
		"((abc){30}){30}(abc){900}":             "repeats too much",
		"(" + strings.Repeat("a", 500) + "){9}": "repeats too much",
		strings.Repeat("a", 513):                "longer than 512 bytes",
		"(?=a)":                                 "not an RE2 expression",
	} {
		re, size, got := model.CompilePattern(source)
		require.Contains(t, got, reason, source)
		require.Equal(t, reason == "", re != nil && size > 0, source)
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		b.Helper()
		for b.Loop() {
			model.CompilePattern(large)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(64<<10), "compiled it has 10 MiB")
}
