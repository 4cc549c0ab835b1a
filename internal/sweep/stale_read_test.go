package sweep_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// laggingStore reads turns as they were at a sequence, 0 for as they are.
type laggingStore struct {
	idempotency.Store

	until uint64
}

func (s *laggingStore) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	records, err := s.Store.Scan(ctx, key, known)
	return slices.DeleteFunc(records, func(r idempotency.Record) bool { return s.until > 0 && r.Seq > s.until }), err
}

// The headers of the journal have shown the answer, and no later record brings it back.
func TestTurnThatAStaleReadShowsParkedIsReadAgain(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.claims(0, 1, 4711)
	key := subjects.TurnKey("app", "chat-0", "", "turn")
	for kind, data := range map[string]string{"park": `{"open":["1"]}`, "ask": `{}`} {
		r := idempotency.Record{Key: key.Private(kind, "1"), Data: []byte(data), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: "parked"}}
		if kind == "ask" {
			r.Key, r.Meta.Outcome = key.Public(kind, "1"), ""
		}
		_, err := b.Store.Create(t.Context(), r)
		require.NoError(t, err)
	}
	_, err := b.Store.Create(t.Context(), idempotency.Record{
		Key: key.Private("answer", "1"), Data: []byte(`"yes"`), Meta: idempotency.Meta{Owner: "w", Nonce: "n", Epoch: 1, Outcome: string(idempotency.Answered)},
	})
	require.NoError(t, err)
	lagging := &laggingStore{Store: b.Store, until: 3}
	b.Store = lagging
	_, found := b.sweep(b.pages())
	require.Empty(t, found)
	lagging.until = 0
	_, found = b.sweep(b.pages())
	require.Equal(t, []string{key.String()}, found)
}
