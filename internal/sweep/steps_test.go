package sweep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// store stores a record of a dead worker.
func (b *testSweep) store(key string, m idempotency.Meta) {
	b.t.Helper()
	m.Owner, m.Nonce, m.Epoch = "dead worker", "n", 1
	_, err := b.Store.Create(b.t.Context(), idempotency.Record{Key: key, Data: []byte("{}"), Meta: m})
	require.NoError(b.t, err)
}

func TestStepsOfAProgramAreNotTurnsAndDoNotEndTheirTurn(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(1)
	turn := subjects.TurnKey("app", "chat", "", "0")
	step := turn.WithCall(subjects.CallOf("first"))
	b.store(step.Public(events.RecordCall), idempotency.Meta{Effect: "unsafe"})
	pages := b.pages()
	swept, found := b.sweep(pages)
	require.Equal(t, []string{turn.String()}, found)
	require.Equal(t, 1, swept.Open)

	b.store(step.Public(events.RecordResponse), idempotency.Meta{})
	swept, found = b.sweep(pages)
	require.Equal(t, []string{turn.String()}, found, "it still has no response")
	require.Equal(t, 1, swept.Open)

	b.store(turn.Public(events.RecordResponse), idempotency.Meta{})
	swept, found = b.sweep(pages)
	require.Empty(t, found)
	require.Zero(t, swept.Open)
}

func TestSweepErasesSecretsOfSteps(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]bool{"in one sweep": false, "ended between two sweeps": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestSweep(t)
			b.Erase = func(ctx context.Context, key subjects.Key) (int, error) { return idempotency.Erase(ctx, b.Store, key) }
			pages := b.pages()
			b.orphans(1)
			turn := subjects.TurnKey("app", "chat", "", "0")
			if between {
				b.sweep(pages)
			}
			b.store(idempotency.AnswerName(turn.WithCall(subjects.CallOf("first")), "1"), idempotency.Meta{
				Outcome: string(idempotency.Answered), Secret: idempotency.Sealed,
			})
			if between {
				swept, _ := b.sweep(pages)
				require.Zero(t, swept.Erased, "another run may need it")
			}
			b.store(turn.Public(events.RecordResponse), idempotency.Meta{})
			swept, _ := b.sweep(pages)
			require.Equal(t, 1, swept.Erased)
			require.Zero(t, swept.Open)
		})
	}
}

// The worker that stored the answer has died before it continued the turn.
func TestAnswerToAQuestionOfAStepHasItsParkedTurnCheckedAgain(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(1)
	turn := subjects.TurnKey("app", "chat", "", "0")
	step := turn.WithCall(subjects.CallOf("first"))
	token := subjects.Token("1")
	b.store(step.Public(events.RecordCall), idempotency.Meta{Effect: "replay"})
	b.store(step.Public(events.RecordAsk, token), idempotency.Meta{})
	_, err := b.Store.Create(t.Context(), idempotency.Record{
		Key: turn.Private(events.RecordPark, "1"), Data: []byte(`{"open":["` + step.Call + "." + token + `"]}`),
		Meta: idempotency.Meta{Owner: "dead worker", Nonce: "n", Epoch: 1, Outcome: idempotency.ParkParked},
	})
	require.NoError(t, err)
	pages := b.pages()
	for range 2 {
		_, found := b.sweep(pages)
		require.Empty(t, found, "it is parked")
	}
	b.store(idempotency.AnswerName(step, "1"), idempotency.Meta{Outcome: string(idempotency.Answered)})
	_, found := b.sweep(pages)
	require.Equal(t, []string{turn.String()}, found)
}
