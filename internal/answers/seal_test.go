package answers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

func TestAnswersAreSealedForTheirQuestionAlone(t *testing.T) {
	t.Parallel()
	keys, err := secrets.Parse([]byte(secrets.NewKey()))
	require.NoError(t, err)
	key := subjects.TurnKey("a", "c", "", "t")
	sealed, err := answers.Seal(keys, key, "1", []byte(`"coerced"`))
	require.NoError(t, err)
	data, err := answers.Open(keys, key, "1", sealed)
	require.NoError(t, err)
	require.Equal(t, `"coerced"`, string(data))
	_, err = answers.Open(keys, key, "2", sealed)
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	data, err = answers.Open(keys, key, "2", []byte(`"plain"`))
	require.NoError(t, err)
	require.Equal(t, `"plain"`, string(data))
	_, err = answers.Seal(nil, key, "1", nil)
	require.Error(t, err)
}
