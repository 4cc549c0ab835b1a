//go:build mutants

package sweep_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfSweepIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Sweep)
}
