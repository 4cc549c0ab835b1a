//go:build failpoints && mutants

package crash_test

import (
	"testing"

	"github.com/oneturn/oneturn/turntest"
)

// TestEachMutantIsCaught plants one fault after the other in real workers.
func TestEachMutantIsCaught(t *testing.T) {
	t.Parallel()
	turntest.CatchMutants(t, "crash")
}
