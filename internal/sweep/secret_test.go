package sweep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// A worker may die between the response and the erasing of what is sealed.
func TestSweepErasesSecretsOfEndedTurnsAndTriesAgain(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(2)
	keys, err := secrets.Parse([]byte(secrets.NewKey()))
	require.NoError(t, err)
	put := func(key, outcome string, secrecy idempotency.Secrecy, data []byte) {
		_, err := b.Store.Create(t.Context(), idempotency.Record{Key: key, Data: data, Meta: idempotency.Meta{
			Owner: "dead worker", Nonce: "n", Epoch: 1, Outcome: outcome, Secret: secrecy,
		}})
		require.NoError(t, err)
	}
	ended, open := subjects.TurnKey("app", "chat", "", "0"), subjects.TurnKey("app", "chat", "", "1")
	for _, key := range []subjects.Key{ended, open} {
		box, err := keys.Seal(idempotency.AnswerName(key, "1"), []byte(`"swordfish"`))
		require.NoError(t, err)
		put(idempotency.AnswerName(key, "1"), string(idempotency.Answered), idempotency.Sealed, box)
	}
	put(ended.Public(events.KindToolResponse), "", "", []byte(`{}`))
	none := func(context.Context, sweep.Finding) (uint64, error) { return 0, nil }
	sealed := func(key subjects.Key) bool {
		turn, err := idempotency.Load(t.Context(), b.Store, key)
		require.NoError(t, err)
		return turn.Secret()
	}

	// A sweep without Erase erases nothing, and one whose erasing fails is repeated.
	swept, err := b.Run(t.Context(), sweep.NewMemoryPages(), later(), sweep.Scope{}, none)
	require.NoError(t, err)
	require.Zero(t, swept.Erased)
	b.Erase = func(context.Context, subjects.Key) (int, error) { return 0, errors.New("the server does not answer") }
	swept, err = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, none)
	require.NoError(t, err)
	require.Equal(t, 1, swept.Failed)
	require.True(t, sealed(ended))

	b.Erase = func(ctx context.Context, key subjects.Key) (int, error) { return idempotency.Erase(ctx, b.Store, key) }
	swept, err = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, none)
	require.NoError(t, err)
	require.Equal(t, 1, swept.Erased)
	require.False(t, sealed(ended))
	require.True(t, sealed(open), "another run may need it")

	// The other one ends between two sweeps.
	put(open.Public(events.KindToolResponse), "", "", []byte(`{}`))
	for _, want := range []int{1, 0} {
		swept, err = b.Run(t.Context(), b.pages(), later(), sweep.Scope{}, none)
		require.NoError(t, err)
		require.Equal(t, want, swept.Erased)
	}
	require.False(t, sealed(open))
	require.Zero(t, swept.Open)
}
