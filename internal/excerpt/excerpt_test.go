package excerpt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/excerpt"
)

func TestExcerptIsValidAndOnOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "grü", excerpt.Of("grüße", 5))
	require.Equal(t, "two\nlines", excerpt.Of("two\nlines", 100))
	require.Equal(t, "two lines and a bell", excerpt.Line("two\r\n\tlines and a bell\x07\x7f\n", 100))
	require.Equal(t, "grü…", excerpt.Line("grüße", 5))
	require.Empty(t, excerpt.Line("\n", 5))
}
