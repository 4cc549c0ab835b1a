package main

import (
	"fmt"
	"io"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// One step of a program in turnctl show, by its tool_call_id or the tool_call_id of its question: the step with the calls in
// it, and their records and questions.

// stepText prints the report of a step for people.
func (l *turnReport) stepText(w io.Writer, step *stepFact) {
	name := "step " + clean(step.Call, events.MaxStepBytes)
	if step.Tool != "" {
		name += " (" + clean(step.Tool, 40) + ")"
	}
	fmt.Fprintf(w, "%s of turn %s of chat %s, app %s", name, id(l.Turn), id(l.Chat), id(l.App))
	if l.Run != "" {
		fmt.Fprintf(w, ", run %s", id(l.Run))
	}
	fmt.Fprintln(w)
	switch step.State {
	case query.StepPending:
		fmt.Fprintf(w, "%s has not started yet\n", name)
	case query.StepSkipped:
		fmt.Fprintf(w, "%s did not start\n", name)
	case api.StepCopied:
		fmt.Fprintln(w, wrap(fmt.Sprintf("%s was copied, its call and result are in the turn that has run it: turnctl show %s %s%s --payload",
			name, argument(l.Chat), cli.ShellWord(clean(step.CopiedFrom, maxCallID)), l.place()), 0))
	default:
		fmt.Fprintln(w)
		l.stepsText(w, []stepFact{*step})
		part := l.partOf(step)
		recordsText(w, part.Records)
		part.callText(w)
		part.questionsText(w)
		part.responseText(w)
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "the turn: turnctl show %s %s%s\n", argument(l.Chat), argument(l.Turn), l.place())
}

// partOf returns the report with the records and questions of a step and of the calls in it.
func (l *turnReport) partOf(step *stepFact) *turnReport {
	names, keys := map[string]bool{}, map[string]bool{}
	var add func(s *stepFact)
	add = func(s *stepFact) {
		call := subjects.CallOf(s.Call)
		names[subjects.StepOf(call)], keys[l.journalKey.WithCall(call).String()] = true, true
		for i := range s.Steps {
			add(&s.Steps[i])
		}
	}
	add(step)
	part := *l
	part.Records, part.Questions = nil, nil
	for i := range l.Records {
		if names[l.Records[i].Step] {
			part.Records = append(part.Records, l.Records[i])
		}
	}
	for i := range l.Questions {
		if keys[l.Questions[i].Key] {
			part.Questions = append(part.Questions, l.Questions[i])
		}
	}
	return &part
}
