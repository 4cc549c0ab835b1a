package answers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/answers"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestHostsCheckAnswersAsAWorkerDoes(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"by":{"type":"string","default":"air"}},"required":["n"]}`)
	check, err := answers.For(&tools.Question{Schema: schema})
	require.NoError(t, err)
	data, err := check(json.RawMessage(`{"n":1}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1,"by":"air"}`, string(data))
	_, err = check(json.RawMessage(`[]`))
	require.EqualError(t, err, "does not match the schema: the whole value: expected object, got array")

	_, err = answers.For(&tools.Question{Schema: json.RawMessage(`{"type":"objekt"}`)})
	require.ErrorContains(t, err, "objekt")

	check, err = answers.For(&tools.Question{Input: true})
	require.NoError(t, err)
	for _, answer := range []string{`"yes"`, `{"n":1}`} {
		data, err = check(json.RawMessage(answer))
		require.NoError(t, err)
		require.Equal(t, answer, string(data))
	}
}
