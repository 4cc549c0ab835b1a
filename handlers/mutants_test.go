//go:build mutants

package handlers_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/internal/test/mutanttest"
)

func TestEachMutantOfHandlersIsCaught(t *testing.T) {
	t.Parallel()
	mutanttest.EachIsCaught(t, mutant.OfHandlers())
}
