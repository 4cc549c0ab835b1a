package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
)

// Step 5 of a message: the next speaker, by the handoff rules of the workflow. The decision is made in the document of the chat, by
// the variables after the message and after the tool of its turn, and stored there before the event is.

// codeOutOfOrder is the code of a handoff that is undecided because a later message was handled before.
const codeOutOfOrder = "out_of_order"

// handsOff reports whether the messages of a workflow have a handoff: its manifests have rules.
func (h *Handlers) handsOff(workflow string) bool { return !h.Bindings().Handoffs(workflow).Empty() }

// handOff stores the speaker after a message, unless that is stored. It does nothing for a message without a handoff.
func (h *Handlers) handOff(ctx context.Context, s *chatMessage) error {
	switch {
	case !s.handsOff():
		return nil
	case s.decided != nil: // just now, with what the message changes
		s.hit(failpoint.AfterDecision)
		return h.storeHandoff(s, s.decided)
	}
	stored, err := h.Journal.Followed(s.m.Held, &s.record, s.key, events.RecordHandoff)
	if err != nil || stored {
		return err
	}
	if err = h.lacksWorkflow(s); err != nil {
		return err
	}
	if err = h.decideHandoff(ctx, s); err != nil && store.Decided(err) {
		return h.storeUndecided(s, err)
	}
	return err
}

// decideHandoff has the next speaker decided, and stores it.
func (h *Handlers) decideHandoff(ctx context.Context, s *chatMessage) error {
	if _, err := h.contentOf(ctx, s); err != nil {
		return err
	}
	rules := h.Bindings().Handoffs(s.WorkflowName)
	answers := map[string]handoff.Answer{}
	for {
		var question *handoff.Question
		applied, err := h.apply(ctx, s, func(c variables.Chat) (decided json.RawMessage) {
			decided, question = decide(rules, s, c, answers)
			return decided
		}, true)
		switch {
		case err != nil:
			return err
		case applied.Handoff != nil:
			s.hit(failpoint.AfterDecision)
			return h.storeHandoff(s, applied.Handoff)
		case question == nil:
			return errNoDecision
		}
		answer, err := h.askDecider(ctx, s, question)
		if err = h.unlessRefused(s, err); err != nil {
			return err
		}
		answers[question.Call()] = cmp.Or(answer, handoff.AnswerFailed)
	}
}

// errNoDecision is the error of a document that was written by a version of the worker that does not know handoffs.
var errNoDecision = errors.New("the document of the chat has no decision on the next speaker: end the workers of earlier versions, which write it without one")

// decide returns the decision of the rules as JSON, or the question that the decider has to answer before.
func decide(rules *handoff.Rules, s *chatMessage, c variables.Chat, answers map[string]handoff.Answer) (json.RawMessage, *handoff.Question) {
	var d handoff.Decision
	switch {
	case s.unknownWorkflow():
		d = undecided(codeUnknownWorkflow, fmt.Sprintf("no worker had workflow %.80q when the message was stored: check its name, or start a worker that has it and send the message again with a new id", s.WorkflowName))
	case c.OutOfOrder:
		d = undecided(codeOutOfOrder, "a later message of the run was handled before this one")
	case c.Refused != "":
		d = undecided(string(events.CodeTooLarge), "what the message sets could not be stored, so conditions cannot see it: "+c.Refused)
	default:
		content, _ := s.content.(string)
		known := maps.Clone(c.Values)
		maps.Copy(known, s.chat().Values()) // what each chat knows can be in conditions as well, whatever a snapshot has
		var question *handoff.Question
		d, question = rules.Decide(handoff.Input{Agent: s.Agent, Content: content, Last: c.LastSpeaker, Variables: known, Answers: answers})
		if question != nil {
			return nil, question
		}
	}
	data, err := d.MarshalJSON()
	if err != nil { // it has no values of others
		return nil, nil
	}
	return data, nil
}

// undecided returns a decision that no rule has made.
func undecided(code, message string) handoff.Decision {
	return handoff.Decision{Rule: handoff.NoRule, Reason: handoff.ReasonUndecided, Code: code, Message: message}
}

// storeHandoff stores the event of a decision.
func (h *Handlers) storeHandoff(s *chatMessage, decision json.RawMessage) error {
	var d handoff.Decision
	if err := json.Unmarshal(decision, &d); err != nil {
		return &events.Error{Code: events.CodeStateCorrupt, Op: "hand off", Msg: "the stored decision cannot be read", Err: err}
	}
	e := events.Handoff{
		ID: s.MessageID, AppID: s.AppID, ChatID: s.ChatID, RunID: s.RunID, MessageID: s.MessageID, TurnSequence: s.TurnSequence,
		Turn: s.Turn, WorkflowName: s.WorkflowName, From: s.Agent, Reason: string(d.Reason), Code: d.Code, Message: d.Message,
	}
	if d.To != "" {
		e.To = &d.To
	}
	if d.Rule != handoff.NoRule {
		e.Rule = &d.Rule
	}
	if d.Fallback != nil {
		e.Fallback = d.Fallback
	}
	for _, v := range d.Via {
		e.Via = append(e.Via, events.Via{Agent: v.Agent, Rule: v.Rule})
	}
	for _, r := range d.Ignored {
		e.Ignored = append(e.Ignored, events.IgnoredRule{Rule: r.Rule, Code: r.Code})
	}
	event, err := events.Encode(events.KindHandoff, &e, h.Now())
	if err != nil {
		return err
	}
	stored, err := h.storeNext(s, s.key, event, events.RecordHandoff)
	if err == nil {
		h.countHandoff(&stored, s.WorkflowName, &d)
	}
	return err
}
