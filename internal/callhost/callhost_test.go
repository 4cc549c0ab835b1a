package callhost_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/callhost"
)

func TestIDsAreUniqueInAnAttemptAndNumberedByKind(t *testing.T) {
	t.Parallel()
	var names callhost.Names
	give := func(of func(string, int, string, func(string) error) (string, error), name string, number int) string {
		id, err := of(name, number, "Card", nil)
		require.NoError(t, err)
		return id
	}
	require.Equal(t, "1", give(names.Question, "", 0))
	require.Equal(t, "s1", give(names.Surface, "", 0))
	require.Equal(t, "2", give(names.Question, "", 0))
	require.Equal(t, "7", give(names.Question, "", 7), "a caller that counts itself")
	require.Equal(t, "color", give(names.Question, "color", 0))
	_, err := names.Question("color", 0, "Card", nil)
	require.ErrorContains(t, err, "duplicate name color:")

	id, tool, err := names.Displayed("call", "call/s1")
	require.NoError(t, err)
	require.Equal(t, []string{"s1", "Card"}, []string{id, tool})
	for _, unknown := range []string{"call/s2", "other/s1", "s1", ""} {
		_, _, err := names.Displayed("call", unknown)
		require.ErrorContains(t, err, "unknown id")
	}
}
