//go:build chaos && mutants

package gatewaychaos_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

// TestEachMutantIsCaught plants one fault after the other in the gateways, which have to be built with the overlay.
func TestEachMutantIsCaught(t *testing.T) {
	t.Parallel()
	mutants.CatchIn(t, mutants.Gateways)
}
