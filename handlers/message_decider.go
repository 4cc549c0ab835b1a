package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
)

// A condition of a handoff rule that a model has to judge goes to the decider of the workflow. Its call has records under the
// message, like a step of a program: the answer is stored before it is used, so no question is asked twice. The token of the call names
// the question: where the rules have changed since, the stored answer to another one does not count.

// askDecider returns the answer of the decider to a question about a message, stored now or before.
func (h *Handlers) askDecider(ctx context.Context, s *chatMessage, q *handoff.Question) (handoff.Answer, error) {
	id := q.Call()
	key := s.key.WithCall(id)
	switch stored, err := h.Journal.End(s.m.Held, key); {
	case err == nil && !stored.Former(s.record.Seq):
		return answerIn(&stored), nil
	case err != nil && !errors.Is(err, idempotency.ErrNotFound):
		return "", err
	}
	t := agentCall(s, id)
	content, _ := s.content.(string)
	data := q.Data(&handoff.Input{Agent: s.Agent, Content: content})
	if t.Binding = h.Bindings().Decider(s.WorkflowName); t.Binding == nil { // the manifests have changed just now
		return handoff.AnswerFailed, nil
	}
	if err := h.storeAgentCall(ctx, t, s, data); err != nil {
		return "", err
	}
	out := h.promptDecider(ctx, t, data)
	if out.Stopped != nil {
		return "", out.Stopped
	}
	return h.storeDeciderReply(t, s, &out)
}

// agentCall is the call of an agent about a message: a decider, or a model that corrects its output.
func agentCall(s *chatMessage, id string) *turn {
	event := &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: s.AppID, Chat: s.ChatID, Run: s.RunID, Turn: s.MessageID},
		Workflow: s.WorkflowName, Agent: s.Agent, UserID: s.UserID, TurnSequence: s.TurnSequence,
	}
	return &turn{Turn: turnOn(s.m, event, s.key.WithCall(id), s.MessageID+"#"+id), m: s.m}
}

// storeAgentCall stores the call of an agent, before it is asked.
func (h *Handlers) storeAgentCall(ctx context.Context, t *turn, s *chatMessage, data map[string]any) error {
	canonical, err := events.Canonicalize(data, 0)
	if err != nil {
		return err
	}
	args, err := h.shrink(s.m.Held, ctx, t.Key, events.KindToolCall, data, canonical)
	if err != nil {
		return err
	}
	event, err := events.Encode(events.KindToolCall, &events.ToolCall{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.StructuredOutputReady.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: t.Binding.Tool, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, Effect: events.EffectNone,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, UserID: t.UserID,
		Payload: events.ToolCallPayload{ToolArgs: args, AgentName: t.Agent, InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow},
	}, h.Now())
	if err != nil {
		return err
	}
	_, err = h.storeNext(s, t.Key, event, events.RecordCall)
	return err
}

// promptDecider asks the decider; its tool has its limits and retries.
func (h *Handlers) promptDecider(ctx context.Context, t *turn, data map[string]any) engine.Outcome {
	text, err := events.AppendJSON(nil, data)
	if err != nil {
		return engine.Failure(t.Binding.Tool, &events.Error{Code: events.CodeBadArgs, Op: "hand off", Msg: events.LogText(err), Err: err})
	}
	request := planner.Request{
		Prompt: tools.Prompt{
			System: handoff.DeciderInstructions, Messages: []tools.Message{{Role: "user", Content: string(text)}}, Schema: events.JSONOf(handoff.DeciderSchema()),
		},
		Round: 1, Data: data,
	}
	return h.promptAgent(ctx, t, &request)
}

// promptAgent asks an agent, as often as the attempts of its tool allow.
func (h *Handlers) promptAgent(ctx context.Context, t *turn, request *planner.Request) engine.Outcome {
	if err := h.findTool(t); err != nil {
		return engine.Failure(t.Binding.Tool, &events.Error{Code: events.CodeUnknownTool, Op: "prompt", Msg: events.LogText(err), Err: err})
	}
	call := run.Call(t.Binding, t.StructuredOutputReady, t.CallID)
	call.Epoch, call.Effect, call.Depth, call.Trace = 1, string(bindings.EffectNone), t.Depth, t.traceparent()
	request.Put(call)
	return h.Engine.Do(ctx, engine.Invocation{Call: call, Tool: run.PromptTool(t.Binding, t.Tool)})
}

// storeDeciderReply stores what the decider has replied, and returns the answer that counts.
func (h *Handlers) storeDeciderReply(t *turn, s *chatMessage, out *engine.Outcome) (handoff.Answer, error) {
	if out.Err != nil {
		h.logThrottled(s.m, slog.LevelWarn, "the decider of a handoff has not answered; the handoff is undecided", "", "workflow", throttle.Cut(s.WorkflowName),
			"chat", throttle.Cut(s.ChatID), "message", throttle.Cut(s.MessageID), "tool", t.Binding.Tool, "code", out.Code, "err", events.LogText(out.Err))
	}
	r := t.response()
	r.ToolName, r.Attempts, r.DurationMS = t.Binding.Tool, out.Attempts, out.Duration.Milliseconds()
	r.Status, r.Success, r.Content, r.Code, r.Payload = out.Status, out.Success, out.Content, out.Code, out.Payload
	stored, err := h.storeAgentResponse(t, s, &r)
	if errors.Is(err, idempotency.ErrRefused) { // else it would be asked again with each delivery
		if answer := answerOf(&r); answer == handoff.AnswerFailed {
			failTooLarge(&r)
		} else {
			r.Content, r.Payload = events.Clip(r.Content), map[string]any{"holds": answer == handoff.AnswerYes}
		}
		stored, err = h.storeAgentResponse(t, s, &r)
	}
	if err != nil {
		return "", err
	}
	return answerIn(&stored), nil
}

// storeAgentResponse stores the reply of an agent, and returns the record that counts.
func (h *Handlers) storeAgentResponse(t *turn, s *chatMessage, r *events.ToolResponse) (idempotency.Record, error) {
	event, err := h.appendResponse(nil, r)
	if err != nil {
		return idempotency.Record{}, err
	}
	return h.storeNext(s, t.Key, event, events.RecordResponse)
}

// answerIn reads the answer in a stored response of the decider.
func answerIn(stored *idempotency.Record) handoff.Answer {
	r, err := events.ReadResponse(stored.Data)
	if err != nil {
		return handoff.AnswerFailed
	}
	return answerOf(r)
}

// answerOf reads the answer in a response of the decider.
func answerOf(r *events.ToolResponse) handoff.Answer {
	if r.FailureCode() != "" {
		return handoff.AnswerFailed
	}
	reply := r.Payload
	if raw, ok := reply.(json.RawMessage); ok {
		var err error
		if reply, err = events.Decode(raw); err != nil {
			return handoff.AnswerFailed
		}
	}
	return handoff.ReadResult(reply)
}
