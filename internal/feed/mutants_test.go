//go:build mutants

package feed_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/test/mutants"
)

func TestEachMutantOfFeedsIsCaught(t *testing.T) {
	t.Parallel()
	mutants.EachIsCaught(t, mutants.Feed)
}
