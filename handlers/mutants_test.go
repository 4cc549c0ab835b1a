//go:build mutants

package handlers_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfHandlersIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Handlers)
}
