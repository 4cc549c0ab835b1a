package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/secrets"
)

func TestSealedDataIsErasedOnlyAfterTheResponseAndItsFactStands(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, s idempotency.Store) {
		t.Helper()
		keys, err := secrets.Parse([]byte(secrets.NewKey()))
		require.NoError(t, err)
		j, h := newJournal(s), owner(t, s, "replay")
		asks(t, s, h, "key", "color")
		answer := answerTo("key", "digest", 2, 1)
		answer.Data, err = keys.Seal(idempotency.AnswerName(key, "key"), []byte(`"swordfish"`))
		require.NoError(t, err)
		require.Equal(t, idempotency.Accepted, answered(t, s, answer).Status)
		answered(t, s, answerTo("color", "blue", 3, 1))
		takes(t, s, h, "key", "color")
		step, err := keys.Seal(idempotency.StepName(key, "login"), []byte(`"token"`))
		require.NoError(t, err)
		_, err = j.Step(t.Context(), h, "login", step)
		require.NoError(t, err)

		n, err := j.Erase(t.Context(), key)
		require.NoError(t, err)
		require.Zero(t, n, "another run may need them")
		reply, err := j.ReadReply(t.Context(), h, "key")
		require.NoError(t, err)
		data, err := keys.Open(idempotency.AnswerName(key, "key"), reply.Data)
		require.NoError(t, err)
		require.Equal(t, `"swordfish"`, string(data))

		_, err = j.Finish(t.Context(), h, []byte(`{}`))
		require.NoError(t, err)
		turn, err := j.Load(t.Context(), key)
		require.NoError(t, err)
		require.True(t, turn.Secret())
		for _, want := range []int{2, 0} {
			n, err = j.Erase(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		turn, err = j.Load(t.Context(), key)
		require.NoError(t, err)
		require.False(t, turn.Secret())
		for _, r := range turn.Records {
			require.False(t, secrets.Sealed(r.Data), r.Key)
		}
		asked, _ := turn.Question("color")
		require.Equal(t, "blue", string(asked.Answer.Data))

		again := answer
		again.Lease = lease(9, 1)
		require.Equal(t, idempotency.TooLate, answered(t, s, again).Status, "a sender that tries values does not learn which one it is")
		again.Lease = answer.Lease
		require.Equal(t, idempotency.Accepted, answered(t, s, again).Status, "its own message is still known")
		other := answerTo("key", "other digest", 10, 1)
		require.Equal(t, idempotency.TooLate, answered(t, s, other).Status)
	})
}
