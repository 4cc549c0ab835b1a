package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/operation"
	"github.com/oneturn/oneturn/internal/test/memhost"
)

func TestStepIsReadOrStoredByItsValue(t *testing.T) {
	t.Parallel()
	var reader operation.Reader
	host := &memhost.Host{}
	host.NewRun()
	do := func(kind, body string) operation.Reply {
		t.Helper()
		operation, err := reader.Read(kind, []byte(body))
		require.NoError(t, err)
		reply, err := operation(t.Context(), host)
		require.NoError(t, err)
		return reply
	}
	require.False(t, do("step", `{"name":"charge"}`).Done)
	require.Equal(t, "null", string(do("step", `{"name":"charge","value":null}`).Value), "null is a result")
	stored := do("step_get", `{"name":"charge"}`)
	require.True(t, stored.Done)
	require.Equal(t, "null", string(stored.Value))
}

func TestInvalidOperationIsAnError(t *testing.T) {
	t.Parallel()
	var reader operation.Reader
	for kind, body := range map[string]string{"steal": `{}`, "ask": `[]`, "show": `{"name":1}`, "progress": `x`, "dismiss": ``} {
		_, err := reader.Read(kind, []byte(body))
		require.Error(t, err, kind)
	}
}
