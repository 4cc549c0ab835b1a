package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/oneturn/oneturn"
)

// play does what people and others do to the turn of a case, each once, as soon as its moment has come.
type play struct {
	c        *Case
	s        *session
	begun    time.Time
	people   int    // of the list, how many have answered: they answer in its order
	acted    []bool // by action
	struck   []bool // by fault: what it waits for has happened
	problems []string
}

// happened reports whether a moment has come. Question is what a person answers, "" for actions and faults.
func (p *play) happened(w *When, records []Stored, question string) bool {
	open := openQuestions(records, p.s.root)
	switch {
	case w.AfterMS > 0:
		return time.Since(p.begun) >= time.Duration(w.AfterMS)*time.Millisecond
	case w.Asked > 0:
		return len(open) >= w.Asked
	case w.Event != "":
		for i := range records {
			if r := &records[i]; !r.Private && r.kind() == w.Event && callOf(r.call(""), p.s.root) == w.Call {
				return true
			}
		}
		return false
	}
	switch w.Name {
	case "parked":
		now, _ := parked(records)
		return now && (question == "" || open[question])
	case "asked":
		return open[question]
	case "after_end":
		return ended(records) != nil
	}
	return w.Name == "at_start"
}

// step does everything whose moment has come.
func (p *play) step(ctx context.Context, records []Stored) error {
	if p.people < len(p.c.People) {
		if person := &p.c.People[p.people]; p.happened(&person.When, records, person.Question) {
			p.people++
			if err := p.answer(ctx, person, records); err != nil {
				return err
			}
		}
	}
	for i := range p.c.Actions {
		if a := &p.c.Actions[i]; !p.acted[i] && p.happened(&a.When, records, "") {
			p.acted[i] = true
			if err := p.act(ctx, a); err != nil {
				return fmt.Errorf("action %s: %w", a.Do, err)
			}
		}
	}
	for i, f := range p.c.Faults {
		if f.After == nil || p.struck[i] || !p.happened(f.After, records, "") {
			continue
		}
		p.struck[i] = true
		if err := os.WriteFile(faultFile(p.s.folder, i), nil, 0o600); err != nil {
			return fmt.Errorf("fault %d: %w", i, err)
		}
	}
	return nil
}

// answer answers a question, after what is expected until then was checked.
func (p *play) answer(ctx context.Context, person *Person, records []Stored) error {
	entries, err := readLedger(p.s.ledgerPath())
	if err != nil {
		return err
	}
	for _, failure := range seen(records, entries, p.s.root).verify(person.Before) {
		p.problems = append(p.problems, "before the answer to "+person.Question+": "+failure)
	}
	r, err := p.s.client.Answer(ctx, &oneturn.Answer{
		QuestionID: oneturn.QuestionID{App: app, Chat: chat, ToolCallID: p.s.root + person.Question},
		Workflow:   workflowName, UserID: user, Value: person.Answer,
	})
	switch {
	case err != nil:
		p.problems = append(p.problems, "answer to "+person.Question+": "+err.Error())
	case !r.OK():
		p.problems = append(p.problems, fmt.Sprintf("answer to %s: %s %s", person.Question, r.Code, r.Message))
	}
	return nil
}

// act does an action.
func (p *play) act(ctx context.Context, a *Action) error {
	switch a.Do {
	case "publish_again":
		for range max(a.Times, 1) {
			if err := p.s.publish(ctx, p.c.data()); err != nil {
				return err
			}
		}
		return nil
	case "publish_other":
		return p.s.publish(ctx, a.Plan)
	case "cancel":
		_, err := p.s.client.Cancel(ctx, &oneturn.Cancel{TurnID: turnID, Workflow: workflowName, Reason: "a case cancels it"})
		return err
	case "change_tool":
		changed := *p.c
		changed.Tools = map[string]Tool{}
		maps.Copy(changed.Tools, p.c.Tools)
		t := changed.Tools[a.Tool]
		if err := json.Unmarshal(a.To, &t); err != nil {
			return fmt.Errorf("the changed tool: %w", err)
		}
		changed.Tools[a.Tool] = t
		return changed.writeWorkflow(p.s.workflows(), p.s.to)
	}
	return fmt.Errorf("unknown action %q", a.Do)
}

// undone returns what was not done before the turn had ended.
func (p *play) undone() (list []string) {
	for _, person := range p.c.People[p.people:] {
		list = append(list, "people: the question "+person.Question+" was not asked")
	}
	for i, a := range p.c.Actions {
		if !p.acted[i] {
			list = append(list, "actions: the moment of "+a.Do+" did not come")
		}
	}
	kills := 0
	for _, f := range p.c.Faults {
		if f.Do == "kill" {
			kills++
		} else if strikes, err := os.ReadFile(filepath.Join(p.s.folder, fileStrikes)); err != nil || len(strikes) == 0 {
			list = append(list, "faults: "+f.Do+" did not happen at "+f.At)
		}
	}
	if kills != p.s.kills {
		list = append(list, fmt.Sprintf("faults: workers were killed %d times, expected %d", p.s.kills, kills))
	}
	return list
}
