//go:build mutants

package program_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfProgramsIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Program)
}
