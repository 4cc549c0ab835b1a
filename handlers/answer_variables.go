package handlers

import (
	"context"
	"slices"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// Answers set context variables by the ui_response triggers of their workflow. The record of the answer has
// a place in the order of all changes, so a later delivery of its message applies them again, which changes nothing.

// setByAnswer sets the context variables of an answer that counts; data is the answer as it is stored, seq the sequence of its
// record. It is done before a parked turn continues, so that a tool that has not read its variables yet sees them. Changes that
// can never be stored are logged, and the turn continues without them.
func (h *Handlers) setByAnswer(ctx context.Context, q *storedQuestion, data []byte, t *idempotency.Turn, seq uint64) error {
	set := h.Bindings()
	rules := set.Rules(q.WorkflowName)
	if !rules.HaveAnswers() || q.Secret {
		return nil
	}
	names := namesOfAsker(set, q, t)
	if !rules.Answers(names...) {
		return nil
	}
	response, err := events.Decode(data)
	if err != nil {
		return nil //nolint:nilerr // cannot happen: a worker has encoded it
	}
	steps := rules.Answer(bindings.Answer{Names: names, Response: response})
	if len(steps) == 0 {
		return nil
	}
	chat := bindings.Chat{App: q.AppID, ID: q.ChatID, Workflow: q.WorkflowName, User: q.UserID}
	applied, err := h.Variables.Apply(ctx, q.AppID, q.ChatID, variables.Message{
		ID: q.key.String() + "/" + q.ask, Seq: seq, Answer: true, Agent: events.AgentUser,
		Below: variables.Layers{Start: set.StartValues(q.WorkflowName, &chat)}, Steps: steps,
	})
	switch {
	case err == nil && applied.Refused != "":
		err = store.Refusal(nil, "%s", applied.Refused)
	case err == nil:
		err = h.reportUpdates(ctx, q, t, applied.Updates)
	}
	if err != nil && store.Decided(err) {
		h.Logger.Error("context variables that an answer sets cannot be stored; the turn continues without them",
			"chat", throttle.Cut(q.ChatID), "question", throttle.Cut(q.ToolCallID), "err", events.LogText(err))
		return nil
	}
	return err
}

// reportUpdates stores an event for each variable that an answer has set.
func (h *Handlers) reportUpdates(ctx context.Context, q *storedQuestion, t *idempotency.Turn, updates []bindings.Update) error {
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
		stored, err := h.Journal.Follow(ctx, t.Claim, q.key, event, events.RecordContextUpdate, subjects.Token(q.ask+"/"+u.Variable))
		if err != nil {
			return err
		}
		h.countChange(&stored, q.WorkflowName, metrics.ChangedByAnswer)
	}
	return nil
}

// setByAnswers sets the context variables of all answers that a call has received, before its response is stored: the next turn of
// the chat sees them, although the handler of an answer may be slower than a tool that waited for it in memory. An error is
// left to that handler.
func (h *Handlers) setByAnswers(ctx context.Context, t *turn) {
	if !t.Asked || !h.Bindings().Rules(t.Workflow).HaveAnswers() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	held, err := h.Journal.Load(ctx, t.Key.OfTurn())
	if err != nil {
		return
	}
	for _, asked := range held.CallOf(t.Key).Questions() {
		if asked.Outcome() != idempotency.Answered || asked.Ask == nil || asked.Ask.Err != nil {
			continue
		}
		q := &storedQuestion{key: t.Key}
		if q.ToolCall, err = query.Question(t.Key, asked.Ask.Data); err == nil {
			if _, q.ask, _ = events.ParseQuestionID(q.ToolCallID); q.ask != "" {
				err = h.setByAnswer(ctx, q, asked.Answer.Data, held, asked.Answer.Seq)
			}
		}
		if err != nil {
			h.Logger.Debug("context variables of an answer are not stored yet", "chat", t.Chat, "turn", t.CallID, "err", events.LogText(err))
		}
	}
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
