package kvstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestReadsAtTheSameTimeReturnWhatReadsInOrderReturn(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	kv := storetest.Open(t, nc, storetest.Bucket(t, nc))
	create := func(record string, secret idempotency.Secrecy) {
		_, err := kv.Create(t.Context(), idempotency.Record{
			Key: record, Meta: idempotency.Meta{Owner: "w", Nonce: record, Epoch: 1, Secret: secret}, Data: []byte(record),
		})
		require.NoError(t, err)
	}
	create(key.Public("tool_call"), idempotency.Plain)
	create(key.Public("ask", "1"), idempotency.Plain)
	create(key.Private("answer", "1"), idempotency.Sealed)
	known, err := kv.Scan(t.Context(), key, nil)
	require.NoError(t, err)
	require.Len(t, known, 3)
	require.NoError(t, kv.Erase(t.Context(), known[2]))
	for i := range 40 { // more than are read at the same time
		create(key.Private("step", string(rune('A'+i))), idempotency.Plain)
	}
	fresh, err := kv.Scan(t.Context(), key, nil)
	require.NoError(t, err)
	require.Len(t, fresh, 43)

	again, err := kv.Scan(t.Context(), key, known)
	require.NoError(t, err)
	require.Equal(t, fresh, again, "what was erased in between is read again")

	elsewhere := known[0]
	elsewhere.Key = key.Public("cancel")
	again, err = kv.Scan(t.Context(), key, []idempotency.Record{elsewhere})
	require.NoError(t, err)
	require.Equal(t, fresh, again, "what is not there (any more) is not made up")

	found, err := kv.LastOf(t.Context(), []string{key.Public("ask", "1"), key.Public("cancel"), key.Public("tool_call")})
	require.NoError(t, err)
	require.Equal(t, key.Public("ask", "1"), found[0].Key)
	require.Nil(t, found[1])
	require.Equal(t, key.Public("tool_call"), found[2].Key)
}
