//go:build mutants

package sweep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfSweepsIsCaught(t *testing.T) {
	mutants.RequireOverlay(t)
	for _, f := range mutants.CaughtIn(mutants.Sweeps) {
		t.Run(f.Name, func(t *testing.T) {
			t.Setenv(mutants.Variable, f.Name)
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
