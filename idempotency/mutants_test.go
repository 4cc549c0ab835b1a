//go:build mutants

package idempotency_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/internal/test/mutanttest"
)

func TestEachMutantOfJournalIsCaught(t *testing.T) {
	t.Parallel()
	mutanttest.EachIsCaught(t, mutant.OfJournal())
}
