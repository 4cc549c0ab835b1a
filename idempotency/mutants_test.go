//go:build mutants

package idempotency_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfJournalIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Idempotency)
}
