package natstool_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
)

// BenchmarkInvoke compares a call with the bare request that it cannot be faster than.
func BenchmarkInvoke(b *testing.B) {
	s := oneturntest.NewServer(b)
	worker, service := s.Connect(), s.Connect()
	_, err := service.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) })
	require.NoError(b, err)
	require.NoError(b, service.Flush())
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			_, err := worker.RequestWithContext(ctx, "echo", []byte(`{"a":"b"}`))
			require.NoError(b, err)
		}
	})
	b.Run("tool", func(b *testing.B) {
		tool := natstool.New(&target.NATS{Subject: "echo"}, natstool.Options{Conn: worker})
		call := &tools.Call{
			CallID: "t1", Name: "echo", Args: map[string]any{"a": "b"}, ArgsJSON: []byte(`{"a":"b"}`), UserID: "ada", Workflow: "Orders", Agent: "A",
			IdempotencyKey: "0123456789abcdef", FencingToken: 1, Epoch: 1, Attempt: 1,
		}
		for b.Loop() {
			_, err := tool.Invoke(ctx, call)
			require.NoError(b, err)
		}
		require.NoError(b, tool.Close(ctx))
	})
}
