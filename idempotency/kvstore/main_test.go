package kvstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = subjects.TurnKey("app", "chat", "", "turn")

func claim(effect string, delivery uint64) idempotency.Claim {
	return idempotency.Claim{
		Key: key, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: delivery},
		Effect: effect, Fingerprint: "f1", Event: []byte(`{}`),
	}
}

func newJournal(s idempotency.Store) *idempotency.Journal {
	return idempotency.New(s, "w", idempotency.Options{})
}

func decide(t *testing.T, s idempotency.Store, c idempotency.Claim) idempotency.Decision {
	t.Helper()
	d, err := newJournal(s).Claim(t.Context(), c)
	require.NoError(t, err)
	return d
}
