package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/subjects"
)

// unlisted is a store whose records cannot be listed.
type unlisted struct{ *storetest.Memory }

// Scan implements [idempotency.Store].
func (unlisted) Scan(context.Context, subjects.Key, []idempotency.Record) ([]idempotency.Record, error) {
	return nil, errors.New("records must not be listed")
}

// What is read by names is what the whole turn shows, also of a key that an earlier turn has used.
func TestHolderAndEndOfATurnAreReadByTheirNames(t *testing.T) {
	t.Parallel()
	for name, former := range map[string]bool{"first generation": false, "second generation": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := storetest.NewMemory()
			j := idempotency.New(unlisted{store}, "w", idempotency.Options{})
			add := func(name, id string, epoch int, l idempotency.Lease) uint64 {
				key := key.Public(name)
				if id != "" {
					key = keyOf(id)
				}
				seq, err := store.Create(t.Context(), idempotency.Record{
					Key: key, Data: []byte(`{}`), Meta: idempotency.Meta{Owner: "o", Nonce: idempotency.NewNonce(), Epoch: epoch, Lease: l},
				})
				require.NoError(t, err)
				return seq
			}
			same := func(want ...idempotency.Lease) {
				t.Helper()
				leases, err := j.Leases(t.Context(), key, subjects.TurnKey("a", "c", "", "never claimed"))
				require.NoError(t, err)
				require.Equal(t, want, leases)
				turn, err := idempotency.Load(t.Context(), store, key)
				require.NoError(t, err)
				ended, err := j.Ended(t.Context(), key)
				require.NoError(t, err)
				require.Equal(t, turn.Response != nil, ended)
				if len(want) > 0 {
					require.Equal(t, turn.Lease, leases[0])
				}
			}
			lease := func(delivery uint64) idempotency.Lease {
				return idempotency.Lease{Stream: "IN", Seq: 7, Delivery: delivery}
			}
			same()
			if former {
				claim := add("tool_call", "", 1, lease(1))
				add("", "4", 4, lease(4))
				add("tool_response", "", 4, lease(4))
				store.Expire(claim)
			}
			add("tool_call", "", 1, lease(5))
			same(lease(5))
			add("", "2", 2, lease(6))
			same(lease(6))
			add("", "3", 3, lease(8))
			same(lease(8))
			if !former {
				add("tool_response", "", 3, lease(8))
				same(lease(8))
			}
		})
	}
}

// keyOf is the name of a takeover.
func keyOf(epoch string) string { return key.Private("takeover", epoch) }
