//go:build !mutants

package mutant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/mutant"
)

func TestNothingCanBePlantedInAReleasedBuild(t *testing.T) {
	t.Parallel()
	require.False(t, mutant.Enabled)
	for _, name := range mutant.All() {
		require.False(t, mutant.Planted(name))
	}
}
