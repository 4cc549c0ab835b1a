package natstool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewerVersionsAreGreater(t *testing.T) {
	t.Parallel()
	inOrder := []string{"", "0.9.9", "1.0.0-alpha", "1.0.0-beta", "1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1+build", "2.0.0"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			require.Equal(t, i < j, compareVersions(a, b) < 0, "%q %q", a, b)
			require.Equal(t, i > j, compareVersions(a, b) > 0, "%q %q", a, b)
		}
	}
	require.Zero(t, compareVersions("1.0.0+a", "1.0.0+b"))
	require.Zero(t, compareVersions("1.0.x", "1"))
}
