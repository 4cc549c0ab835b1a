//go:build mutants

package store_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfStoreIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Store)
}
