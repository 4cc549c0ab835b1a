package main

import (
	"fmt"
	"io"

	"github.com/oneturn/oneturn/bindings"
)

// handoffReport is one handoff rule that can be used, and what it means.
type handoffReport struct {
	Rule      int      `json:"rule"` // its number in events and decisions
	From      []string `json:"from"`
	To        string   `json:"to"`
	Kind      string   `json:"kind"` // condition, llm or after_work
	Pre       bool     `json:"pre"`  // tried before from speaks
	Condition string   `json:"condition,omitempty"`
	Text      string   `json:"text"` // the rule as a sentence
	File      string   `json:"file"`
	Line      int      `json:"line"`
}

func reportHandoffs(set *bindings.Set, workflow string) []handoffReport {
	rules := set.Handoffs(workflow).List()
	all := make([]handoffReport, 0, len(rules))
	for _, r := range rules {
		all = append(all, handoffReport{
			Rule: r.Number, From: r.From, To: r.To, Kind: string(r.Kind), Pre: r.Pre, Condition: r.Condition(), Text: r.String(), File: r.File, Line: r.Line,
		})
	}
	return all
}

// handoffsText prints the rules by their numbers, as sentences.
func handoffsText(w io.Writer, all []handoffReport, decider string) {
	if len(all) == 0 {
		return
	}
	title := "  handoffs"
	if decider != "" {
		title += ", decider " + id(decider)
	}
	fmt.Fprintln(w, title)
	for _, r := range all {
		fmt.Fprintln(w, wrap(clean(fmt.Sprintf("%d: %s (%s:%d)", r.Rule, r.Text, r.File, r.Line), longestText), 6))
	}
}
