package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
)

// The steps of a program in turnctl show: a tree in the order of the program, printed with the calls of groups and of nested
// programs indented.

// stepFact is a step of a program: a call, or a group of calls that run at the same time.
type stepFact struct {
	api.Step

	Word    string `json:"state"`             // its state as in the text, which also states how it has ended
	Merge   string `json:"merge,omitempty"`   // of a group
	Winner  string `json:"winner,omitempty"`  // of a group: the call whose success came first, if only that counts
	Partial bool   `json:"partial,omitempty"` // of a group: some of its calls have succeeded, but not all

	Approval *query.Approval `json:"approval,omitempty"` // of the question whether the program may run

	Needs     []string     `json:"needs,omitempty"` // calls that its arguments refer to
	Owner     string       `json:"owner,omitempty"` // the worker that has called it, and its epoch
	Epoch     int          `json:"epoch,omitempty"`
	Arguments *callFacts   `json:"arguments,omitempty"`
	Response  *answerFacts `json:"response,omitempty"`
	Steps     []stepFact   `json:"steps,omitempty"` // of the group, or of the program that it runs
}

func newSteps(steps []query.ProgramStep, payload bool) []stepFact {
	if len(steps) == 0 {
		return nil
	}
	facts := make([]stepFact, 0, len(steps))
	for i := range steps {
		s := &steps[i]
		f := stepFact{Step: s.Step, Merge: s.Merge, Winner: s.Winner, Partial: s.Partial, Approval: s.Approval, Needs: s.Needs, Steps: newSteps(s.Steps, payload)}
		if c := s.Record; c != nil && c.Called != nil {
			f.Owner, f.Epoch = c.Called.Meta.Owner, c.Called.Meta.Epoch
			if e, err := events.ReadCall(c.Called.Data); err == nil {
				f.Arguments = newCallFacts(e, payload)
			}
		}
		if c := s.Record; c != nil && c.Response != nil {
			if e, err := events.ReadResponse(c.Response.Data); err == nil {
				f.Response = newAnswerFacts(e, c.Called, c.Response, payload)
			}
		}
		f.Word = f.stateWord()
		facts = append(facts, f)
	}
	return facts
}

// findStep returns a step by its id, nil if there is none.
func findStep(steps []stepFact, call string) *stepFact {
	for i := range steps {
		if steps[i].Call == call {
			return &steps[i]
		}
		if found := findStep(steps[i].Steps, call); found != nil {
			return found
		}
	}
	return nil
}

// shown returns what is printed in detail: the call and the response of the step whose id was given, else the call and the response of the turn.
func (l *turnReport) shown() (what string, call *callFacts, response *answerFacts) {
	if step := findStep(l.Steps, l.Step); step != nil {
		return " of step " + clean(l.Step, events.MaxStepBytes), step.Arguments, step.Response
	}
	return "", l.Call, l.Response
}

func (l *turnReport) stepsText(w io.Writer, steps []stepFact) {
	if len(steps) == 0 {
		return
	}
	fmt.Fprintln(w, "steps:")
	rows := [][]string{{"step", "tool", "state", "effect", "called", "took", "attempts", "details"}}
	table(w, 2, l.stepRows(rows, steps, 0), 0, 2)
	fmt.Fprintln(w)
}

func (l *turnReport) stepRows(rows [][]string, steps []stepFact, indent int) [][]string {
	for i := range steps {
		s := &steps[i]
		name := strings.Repeat("  ", indent) + clean(s.Call, events.MaxStepBytes)
		if s.Merge != "" {
			rows = append(rows, []string{name, "", s.stateText(), "", "", "", "", "group, " + clean(s.Merge, 40)})
		} else {
			rows = append(rows, l.stepRow(name, s))
		}
		rows = l.stepRows(rows, s.Steps, indent+1)
	}
	return rows
}

func (l *turnReport) stepRow(name string, s *stepFact) []string {
	called, took, attempts := "", "", ""
	if !s.CalledAt.IsZero() && len(l.Records) > 0 {
		called = fmt.Sprintf("+%.1f ms", milliseconds(s.CalledAt.Sub(l.Records[0].Time)))
	}
	if s.State == api.StepEnded && s.Approval == nil || s.State == query.StepStopped {
		took, attempts = fmt.Sprintf("%d ms", s.DurationMS), strconv.Itoa(s.Attempts)
	}
	return []string{name, clean(s.Tool, 40), s.stateText(), clean(s.Effect, 40), called, took, attempts, l.stepDetails(s)}
}

func (s *stepFact) stateText() string {
	if s.Winner != "" && (s.State == api.StepEnded || s.State == api.StepCopied) {
		return s.Word + " (" + clean(s.Winner, events.MaxStepBytes) + ")"
	}
	return s.Word
}

// stateWord is the state of a step or group, and of an ended one how it has ended.
func (s *stepFact) stateWord() string {
	switch {
	case s.Approval != nil:
		return string(s.Approval.State)
	case s.State != api.StepEnded:
		return string(s.State)
	case s.Partial:
		return "partial"
	case s.Success:
		return "succeeded"
	default:
		return "failed"
	}
}

// stepDetails names what a step waits for, or why it has failed.
func (l *turnReport) stepDetails(s *stepFact) string {
	var parts []string
	if s.CopiedFrom != "" {
		parts = append(parts, "from "+clean(s.CopiedFrom, maxCallID))
		if !s.Success {
			parts = append(parts, clean(string(s.Code), 40))
		}
	}
	for _, open := range s.OpenQuestions {
		text := "waits for the answer to " + clean(open, maxCallID)
		if i := slices.IndexFunc(l.Questions, func(q question) bool { return q.ToolCallID == open }); i >= 0 && l.Questions[i].User != "" {
			text += " by " + id(l.Questions[i].User)
		}
		parts = append(parts, text)
	}
	if a := s.Approval; a != nil && a.By != "" {
		text := "by " + id(a.By)
		if a.Reason != "" {
			text += ": " + clean(a.Reason, 300)
		}
		parts = append(parts, text)
	}
	if s.State == query.StepStopped {
		return "another was first"
	}
	if r := s.Response; r != nil && !s.Success {
		text := clean(string(s.Code), 40)
		if r.Content != "" {
			text = strings.TrimPrefix(text+": "+clean(strings.Join(strings.Fields(r.Content), " "), 300), ": ")
		}
		parts = append(parts, text)
	}
	if s.State == api.StepEnded && s.Response == nil && s.Code != "" {
		parts = append(parts, clean(string(s.Code), 40))
	}
	return strings.Join(parts, "; ")
}
