package main

import (
	"fmt"
	"io"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/plural"
)

// correctionsReport is which tool is asked to correct the outputs of an agent that cannot be used, and how often.
type correctionsReport struct {
	Agent       string `json:"agent"`
	Completion  string `json:"completion"` // the tool
	Corrections int    `json:"corrections"`
}

func reportCorrections(set *bindings.Set, workflow string) []correctionsReport {
	known := set.Corrections(workflow)
	all := make([]correctionsReport, 0, len(known))
	for _, c := range known {
		all = append(all, correctionsReport{c.Agent, c.Tool, c.Most})
	}
	return all
}

// correctionsText prints the agents whose outputs are corrected.
func correctionsText(w io.Writer, all []correctionsReport) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "  corrections of outputs that cannot be used")
	for _, c := range all {
		fmt.Fprintln(w, wrap(clean(fmt.Sprintf("%s: %s is asked, up to %s", c.Agent, c.Completion, plural.Of(c.Corrections, "time")), longestText), 6))
	}
}
