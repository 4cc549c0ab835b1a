package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Step 4 of a message: what follows from it. Everything is done from the stored text, so any worker may continue.

// follow stores what follows from a message, runs its turn, and acknowledges it after the last record.
func (h *Handlers) follow(ctx context.Context, s *chatMessage) inbound.Disposition {
	s.hit(failpoint.AfterText)
	if err := h.mayFollow(s); err != nil {
		return h.redeliver(s.m, "a message waits for a worker that has its workflow", err)
	}
	var next func(variables.Chat) json.RawMessage
	if s.Turn == "" && s.handsOff() { // in the same step as what it changes, so that no other message comes between
		rules := h.Bindings().Handoffs(s.WorkflowName)
		switch _, err := h.contentOf(ctx, s); {
		case err == nil:
			next = func(c variables.Chat) json.RawMessage {
				decided, _ := decide(rules, s, c, nil)
				return decided
			}
		case !store.Decided(err): // else its handoff is undecided
			return h.redeliver(s.m, "the content of a message cannot be read", err)
		}
	}
	applied, err := h.apply(ctx, s, next, false)
	switch {
	case err != nil && !store.Decided(err):
		return h.redeliver(s.m, "what a message changes could not be stored", err)
	case err != nil:
		h.warnWithoutVariables(s, err)
	}
	s.decided = applied.Handoff
	s.hit(failpoint.AfterApply)
	for _, u := range applied.Updates {
		if err := h.unlessRefused(s, h.reportChange(s, &u)); err != nil {
			return h.redeliver(s.m, "a changed context variable could not be reported", err)
		}
		s.hit(failpoint.AfterUpdate)
	}
	if s.Turn == "" && s.Model != "" && (s.StructuredOutput != nil || s.Unread != nil) {
		if err := h.unlessRefused(s, h.storeOutput(ctx, s)); err != nil {
			return h.redeliver(s.m, "a structured output could not be stored", err)
		}
	}
	if s.Turn != "" {
		t, d := h.runTurnOf(ctx, s)
		return h.afterTurn(s, t, d)
	}
	if err := h.handOff(ctx, s); err != nil {
		return h.redeliver(s.m, "the next speaker could not be stored", err)
	}
	return inbound.Acked()
}

// reportChange stores the event of a variable that a message has changed.
func (h *Handlers) reportChange(s *chatMessage, u *bindings.Update) error {
	event, err := events.Encode(events.KindContextUpdate, &events.ContextUpdate{
		ID: s.MessageID, AppID: s.AppID, ChatID: s.ChatID, RunID: s.RunID, MessageID: s.MessageID, Agent: s.Agent,
		WorkflowName: s.WorkflowName, Variable: u.Variable, Value: u.Value,
	}, h.Now())
	if err != nil {
		return err
	}
	stored, err := h.storeNext(s, s.key, event, events.RecordContextUpdate, subjects.Token(u.Variable))
	if err == nil {
		h.countChange(&stored, s.WorkflowName, metrics.ChangedByMessage)
	}
	return err
}

// storeNext stores a record that follows from a message, under its key or the key of a call for it, and returns the one that counts.
func (h *Handlers) storeNext(s *chatMessage, key subjects.Key, event []byte, kind string, id ...string) (idempotency.Record, error) {
	r, err := h.Journal.Follow(s.m.Held, &s.record, key, event, kind, id...)
	if err == nil && r.Time.IsZero() { // it was stored now, and not read
		h.addStored(key.App, len(event))
	}
	return r, err
}

// apply decides in the document of the chat what a message changes and, if handoff is set, the next speaker. A message from
// which neither follows costs nothing. Changed is set if what it changes was decided before.
func (h *Handlers) apply(ctx context.Context, s *chatMessage, handoff func(variables.Chat) json.RawMessage, changed bool) (variables.Applied, error) {
	if len(s.Changes) == 0 && !s.handsOff() || s.OutOfOrder && handoff == nil {
		return variables.Applied{}, nil
	}
	below := variables.Layers{Start: h.Bindings().StartValues(s.WorkflowName, s.chat()), Snapshot: s.snapshot}
	if err := s.readVariables(h, below); err != nil {
		return variables.Applied{}, err
	}
	m := variables.Message{
		ID: s.key.Turn, Seq: s.record.Seq, Run: s.RunID, Sequence: s.TurnSequence, Agent: s.Agent, OutOfOrder: s.OutOfOrder, Handoff: handoff,
		Below: below, Changed: changed, Tool: s.changes,
	}
	if s.seen != nil { // what is stored is newer
		start := maps.Clone(s.seen)
		maps.Copy(start, m.Below.Start)
		m.Below.Start = start
	}
	for _, c := range s.Changes {
		m.Steps = append(m.Steps, bindings.Step{Variable: c.Variable, From: c.From, Value: c.Value})
	}
	writing, done := store.Context(s.m.Held, ctx)
	defer done()
	applied, err := h.Variables.Apply(writing, s.AppID, s.ChatID, m)
	if err == nil && s.changes != nil {
		s.changes = nil
		s.hit(failpoint.AfterMerge)
	}
	if err == nil && applied.Refused != "" {
		h.warnWithoutVariables(s, errors.New(applied.Refused))
	}
	return applied, err
}

// chat is what the chat of the message knows from its start.
func (s *chatMessage) chat() *bindings.Chat {
	return &bindings.Chat{App: s.AppID, ID: s.ChatID, Workflow: s.WorkflowName, User: s.UserID}
}

// handsOff reports whether a handoff follows from the message.
func (s *chatMessage) handsOff() bool {
	return s.record.Meta.Outcome == idempotency.DueHandoff || s.record.Meta.Outcome == idempotency.DueTurnHandoff
}

// storeOutput stores the structured output of an agent whose output calls no tool.
func (h *Handlers) storeOutput(ctx context.Context, s *chatMessage) error {
	e := events.StructuredOutput{
		ID: s.MessageID, AppID: s.AppID, ChatID: s.ChatID, RunID: s.RunID, MessageID: s.MessageID, TurnSequence: s.TurnSequence,
		Agent: s.Agent, WorkflowName: s.WorkflowName, Model: s.Model, Status: events.StatusOK, Success: true, Payload: s.StructuredOutput,
	}
	unread := s.Unread
	if unread != nil && s.Corrections > 0 {
		c, err := h.correctOutput(ctx, s)
		if err != nil {
			return err
		}
		if e.Usage, unread = c.cost(), c.failed.stored(); unread == nil {
			if e.Payload, err = h.shrinkValue(ctx, s, events.KindStructuredOutput, c.StructuredOutput); err != nil {
				return err
			}
		}
	}
	if unread != nil {
		e.Status, e.Success, e.Code = events.StatusError, false, events.CodeValidationFailed
		e.Content, e.Payload = unread.Content, unread.Payload
	}
	event, err := events.Encode(events.KindStructuredOutput, &e, h.Now())
	if err != nil {
		return err
	}
	_, err = h.storeNext(s, s.key, event, events.RecordStructuredOutput)
	return err
}
