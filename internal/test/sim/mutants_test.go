//go:build mutants

package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/mutants"
	"github.com/oneturn/oneturn/internal/test/sim"
)

// enough is how many schedules a mutant may survive.
const enough = 20_000

// TestEachMutantIsCaught plants one fault after the other in the code under test. A fault that
// no schedule finds means that the simulation does not check what it should.
func TestEachMutantIsCaught(t *testing.T) {
	mutants.RequireOverlay(t)
	for _, f := range mutants.CaughtIn(mutants.Sim) {
		t.Run(f.Name, func(t *testing.T) {
			t.Setenv(mutants.Variable, f.Name)
			s, err := sim.New()
			require.NoError(t, err)
			begin, total := time.Now(), newTotal()
			total.run(s, 1, enough)
			require.True(t, total.failed(), "survived %d schedules", enough)
			t.Logf("caught in %s by seed %d: %s", time.Since(begin).Round(time.Millisecond), total.bad.Seed, total.bad.Violations[0])
		})
	}
}
