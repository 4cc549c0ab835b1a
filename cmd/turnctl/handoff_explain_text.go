package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/oneturn/oneturn/handoff"
)

// text prints the explanation for people. All texts and values come from outside and are cleaned before they are printed.
func (e *explanation) text(w io.Writer) {
	fmt.Fprintf(w, "message %s of chat %s, app %s, workflow %s", id(e.Message), id(e.Chat), id(e.App), id(e.Workflow))
	if e.Run != "" {
		fmt.Fprintf(w, ", run %s", id(e.Run))
	}
	fmt.Fprintln(w)
	if h := e.Handoff; h == nil {
		fmt.Fprintln(w, wrap("no handoff is stored: "+clean(e.Meaning, 500), 0))
	} else {
		fmt.Fprintln(w, wrap((&messageReport{Agent: e.Agent, Handoff: h}).handoffLine(), 0))
		if h.Message != "" {
			fmt.Fprintln(w, wrap(clean(h.Message, longestText), 2))
		}
		if h.Fallback != nil {
			fmt.Fprintln(w, wrap("fallback, which the other rules give: "+short(jsonValue(h.Fallback)), 2))
		}
	}
	for _, note := range e.Notes {
		fmt.Fprintln(w, wrap("note: "+clean(note, longestText), 0))
	}
	e.rulesText(w)
	e.variablesText(w)
	e.deciderText(w)
	e.ignoredText(w)
}

func (e *explanation) rulesText(w io.Writer) {
	if len(e.Rules) == 0 {
		return
	}
	fmt.Fprintln(w, "\nrules in the order tried:")
	rows := make([][]string, 1, 1+len(e.Rules))
	rows[0] = []string{"rule", "of", "to", "outcome", "condition"}
	for i := range e.Rules {
		r := &e.Rules[i]
		of, condition := cell(r.Source), clean(r.Condition, longestText)
		if r.Pre {
			of += " (pre)"
		}
		if condition == "" {
			condition = "-"
		}
		rows = append(rows, []string{strconv.Itoa(r.Rule), of, cell(r.To), r.outcomeText(), condition})
	}
	table(w, 2, rows, 0, 3)
}

// outcomeText is the outcome for people.
func (r *trialFact) outcomeText() string {
	switch r.Outcome {
	case handoff.OutcomeApplies:
		return "applies"
	case handoff.OutcomeOtherText:
		return "other text"
	case handoff.OutcomeFalse:
		return "false"
	case handoff.OutcomeDenied:
		return "decider: no"
	case handoff.OutcomeUndecided:
		return "undecided: " + cell(r.Code)
	case handoff.OutcomeUnanswered:
		return "no answer yet"
	case handoff.OutcomeOverridden:
		return "a later one counts"
	case handoff.OutcomeNotTried:
	}
	return "not tried"
}

func (e *explanation) variablesText(w io.Writer) {
	if len(e.Variables) == 0 {
		return
	}
	fmt.Fprintln(w, "\ncontext variables in the conditions:")
	rows := make([][]string, 1, 1+len(e.Variables))
	rows[0] = []string{"variable", "value", "as of"}
	for _, v := range e.Variables {
		value := "-"
		if v.Exists {
			value = short(v.Value)
		}
		rows = append(rows, []string{cell(v.Name), value, v.AsOf})
	}
	table(w, 2, rows, 0)
}

func (e *explanation) deciderText(w io.Writer) {
	if len(e.Decider) == 0 {
		return
	}
	fmt.Fprintln(w, "\ndecider:")
	for i := range e.Decider {
		c := &e.Decider[i]
		outcome := "has not answered yet"
		if c.Outcome != "" {
			outcome = string(c.answer())
		}
		fmt.Fprintln(w, wrap(fmt.Sprintf("rule %d, %s: %s", *c.Rule, cell(c.Tool), outcome), 2))
		fmt.Fprintln(w, wrap("asked: "+clean(string(c.Asked), longestText), 4))
		if len(c.Reply) > 0 {
			fmt.Fprintln(w, wrap("reply: "+clean(string(c.Reply), longestText), 4))
		}
	}
}

func (e *explanation) ignoredText(w io.Writer) {
	if e.Handoff == nil || len(e.Handoff.Ignored) == 0 {
		return
	}
	fmt.Fprintln(w, "\nrules that cannot be used, see turnctl check:")
	rows := [][]string{{"rule", "error"}}
	for _, r := range e.Handoff.Ignored {
		rows = append(rows, []string{strconv.Itoa(r.Rule), cell(r.Code)})
	}
	table(w, 2, rows, 0)
}
