//go:build mutants

package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/mutant"
)

func TestEachMutantOfSweepsIsCaught(t *testing.T) {
	for _, name := range mutant.OfSweeps() {
		t.Run(string(name), func(t *testing.T) {
			t.Setenv(mutant.Variable, string(name))
			for seed := range uint64(20) {
				if wrong := sweepTurns(t, seed); len(wrong) > 0 {
					t.Logf("caught by seed %d: %s", seed, wrong[0])
					return
				}
			}
			require.Fail(t, "not caught")
		})
	}
}
