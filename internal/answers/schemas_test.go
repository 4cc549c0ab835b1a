package answers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/answers"
)

func TestSchemaThatNoAnswerSatisfiesIsRefusedWhenItIsAsked(t *testing.T) {
	t.Parallel()
	var schemas answers.Schemas
	require.NoError(t, schemas.CheckSchema(nil))
	require.NoError(t, schemas.CheckSchema(json.RawMessage(`{"type":"string"}`)))
	for _, schema := range []string{`{`, `[]`, `{"type":"strin"}`, `{"$ref":"file:///etc/passwd"}`} {
		err := schemas.CheckSchema(json.RawMessage(schema))
		require.ErrorIs(t, err, events.ErrToolError, schema)
	}
	var coded *events.Error
	require.ErrorAs(t, schemas.CheckSchema(json.RawMessage(`{"type":"objekt"}`)), &coded)
	require.Contains(t, coded.Msg, "objekt", "the author of the schema learns what is wrong with it")
}
