//go:build mutants

package sweep_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfHeaderReadsIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Sweep)
}
