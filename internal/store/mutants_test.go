//go:build mutants

package store_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfBlobsIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Store)
}
