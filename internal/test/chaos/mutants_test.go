//go:build chaos && mutants

package chaos_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

// TestEachMutantIsCaught plants one fault after the other in real workers.
func TestEachMutantIsCaught(t *testing.T) {
	t.Parallel()
	mutants.CatchIn(t, mutants.Chaos)
}
