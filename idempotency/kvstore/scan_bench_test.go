package kvstore_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// BenchmarkLoad reads one turn from a journal of many.
func BenchmarkLoad(b *testing.B) {
	const turns = 50_000
	nc := oneturntest.NewServer(b).Connect()
	kv := storetest.Open(b, nc, storetest.Bucket(b, nc))
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < turns; i += 64 {
				k := subjects.TurnKey("app", "chat", "", strconv.Itoa(i))
				for _, name := range []string{k.Public("tool_call"), k.Public("tool_response")} {
					if _, err := kv.Create(b.Context(), idempotency.Record{Key: name, Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1}, Data: make([]byte, 256)}); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	b.ResetTimer()
	for i := range b.N {
		t, err := idempotency.Load(b.Context(), kv, subjects.TurnKey("app", "chat", "", strconv.Itoa(i%turns)))
		require.NoError(b, err)
		require.NotNil(b, t.Response)
	}
}
