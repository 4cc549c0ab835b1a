package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const echo = "def echo(text): return text\nasync def aecho(text): return text\n"

func BenchmarkWarmSyncCall(b *testing.B)  { benchmarkCall(b, "echo") }
func BenchmarkWarmAsyncCall(b *testing.B) { benchmarkCall(b, "aecho") }

func benchmarkCall(b *testing.B, function string) {
	b.Helper()
	k := newKit(b, python.Options{}, "WF/tools/t.py", echo)
	tool, call := k.pool.Tool("WF", "t.py", function), newCall(b, function, `{"text":"hello"}`)
	_, err := tool.Invoke(b.Context(), call)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Invoke(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConcurrentWarmAsyncCalls(b *testing.B) {
	k := newKit(b, python.Options{}, "WF/tools/t.py", echo)
	tool := k.pool.Tool("WF", "t.py", "aecho")
	call := newCall(b, "aecho", `{"text":"hello"}`)
	_, err := tool.Invoke(b.Context(), call)
	require.NoError(b, err)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := tool.Invoke(b.Context(), call); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
