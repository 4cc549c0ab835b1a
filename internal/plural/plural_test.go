package plural_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/plural"
)

func TestOnlyOneIsSingular(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"0 tools", "1 tool", "2 tools"}, []string{plural.Of(0, "tool"), plural.Of(1, "tool"), plural.Of(2, "tool")})
}
