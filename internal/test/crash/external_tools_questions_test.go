//go:build failpoints

package crash_test

import (
	"testing"

	"github.com/oneturn/oneturn/internal/failpoint"
)

// F01, F28: TestMatrixOfToolsInOtherProcessesThatAsk kills the only worker between a question that a service
// or a server asks and the outcome of its answer.
func TestMatrixOfToolsInOtherProcessesThatAsk(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{kindNATS, kindMCP, kindMCPHTTP} {
		for _, c := range askedCells() {
			switch c.point {
			case afterLastAnswer, failpoint.Step, failpoint.Show:
				continue // the tool outside does not come by
			case failpoint.AfterPark, failpoint.AfterTaken:
			default:
				if *others <= 1 {
					continue
				}
			}
			t.Run(kind+"/"+c.title(), func(t *testing.T) {
				t.Parallel()
				c.brief(1) // replay and keyed: whether the tool is entered again, and when
				r := c.rigOf(t, 2).callsOutside(kind, "")
				r.killAsked(c.cell, *others)
				r.settleOutside()
			})
		}
	}
}
