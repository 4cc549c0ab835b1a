package handlers

import (
	"slices"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Answers set context variables by the ui_response triggers of their workflow. The record of the answer has
// a place in the order of all changes, so a later delivery of its message applies them again, which changes nothing.

// setByAnswer sets the context variables of an answer that counts; data is the answer as it is stored. It is done before
// the turn continues, so that the tool of a parked turn that has not read its variables yet sees them. Changes that can
// never be stored are logged, and the turn continues without them.
func (h *Handlers) setByAnswer(m *message, q *storedQuestion, data []byte, v idempotency.AnswerDecision) error {
	set := h.Bindings()
	rules := set.Rules(q.WorkflowName)
	if !rules.HaveAnswers() || q.Secret {
		return nil
	}
	names := namesOfAsker(set, q, v.Turn)
	if !rules.Answers(names...) {
		return nil
	}
	response, err := events.Decode(data)
	if err != nil {
		return nil // cannot happen: this worker has encoded it
	}
	steps := rules.Answer(bindings.Answer{Names: names, Response: response})
	if len(steps) == 0 {
		return nil
	}
	chat := bindings.Chat{App: q.AppID, ID: q.ChatID, Workflow: q.WorkflowName, User: q.UserID}
	writing, done := store.Context(m.Held, m.tools)
	defer done()
	applied, err := h.Variables.Apply(writing, q.AppID, q.ChatID, variables.Message{
		ID: q.key.String() + "/" + q.ask, Seq: v.Seq, Answer: true, Agent: events.AgentUser,
		Below: variables.Layers{Start: set.StartValues(q.WorkflowName, &chat)}, Steps: steps,
	})
	if err == nil {
		err = h.reportUpdates(m, q, v.Turn, applied.Updates)
	}
	if err != nil && store.Decided(err) {
		h.Logger.Error("context variables that an answer sets cannot be stored; the turn continues without them",
			"chat", throttle.Cut(q.ChatID), "question", throttle.Cut(q.ToolCallID), "err", events.LogText(err))
		return nil
	}
	return err
}

// reportUpdates stores an event for each variable that an answer has set.
func (h *Handlers) reportUpdates(m *message, q *storedQuestion, t *idempotency.Turn, updates []bindings.Update) error {
	if t == nil || t.Claim == nil {
		return nil
	}
	for _, u := range updates {
		event, err := events.Encode(events.KindContextUpdate, &events.ContextUpdate{
			ID: q.ToolCallID, AppID: q.AppID, ChatID: q.ChatID, RunID: q.RunID, Agent: q.Agent, WorkflowName: q.WorkflowName,
			Variable: u.Variable, Value: u.Value,
		}, h.Now())
		if err != nil {
			return err
		}
		if _, err := h.Journal.Follow(m.Held, t.Claim, q.key, event, events.RecordContextUpdate, subjects.Token(q.ask+"/"+u.Variable)); err != nil {
			return err
		}
	}
	return nil
}

// namesOfAsker returns the names by which triggers may know who asked a question: its component, its tool, the tool of its
// call, and the functions of these tools.
func namesOfAsker(set *bindings.Set, q *storedQuestion, t *idempotency.Turn) []string {
	tools := []string{q.ToolName}
	if call := t.CallOf(q.key); call != nil && call.Called != nil {
		if called, err := events.ReadCall(call.Called.Data); err == nil && called.ToolName != q.ToolName {
			tools = append(tools, called.ToolName)
		}
	}
	names := slices.Clone(tools)
	if q.ComponentType != nil {
		names = append(names, *q.ComponentType)
	}
	for _, tool := range tools {
		if b := set.Bound(q.WorkflowName, q.Agent, tool); b != nil && b.Function != "" {
			names = append(names, b.Function)
		}
	}
	return names
}
