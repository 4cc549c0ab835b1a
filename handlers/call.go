package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// callEvent writes the event chat.tool_call, which is the claim, into a buffer.
func (h *Handlers) callEvent(ctx context.Context, t *turn, into []byte) ([]byte, error) {
	e := events.ToolCall{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, UserID: t.UserID, CorrectionOf: t.CorrectionOf,
	}
	e.Payload = events.ToolCallPayload{AgentName: t.Agent, InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow}
	if b := t.Binding; b != nil {
		e.ToolName, e.Display, e.DisplayType, e.Payload.Display = b.Tool, b.Display, b.Display, b.Display
		if b.Component != "" {
			e.ComponentType = &b.Component
		}
	}
	if t.reject != nil {
		e.Rejected, e.Code = true, t.reject.code
		e.Rejection = &events.Rejection{Content: t.reject.content, Payload: t.reject.payload}
		e.Payload.ToolArgs = map[string]any{}
	} else {
		args, err := h.shrink(t.m.Held, ctx, t.Key, events.KindToolCall, t.argsJSON, t.argsJSON)
		if err != nil {
			return nil, err
		}
		e.Payload.ToolArgs = args
		if message, ok := t.args["agent_message"].(string); ok {
			e.Payload.AgentMessage = events.Clip(strings.TrimSpace(message))
		}
	}
	return events.AppendToolCall(into, &e, h.Now())
}

// response returns a tool_response with everything that does not depend on the outcome.
func (t *turn) response() *events.ToolResponse {
	return &events.ToolResponse{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, Attempts: t.attempts, DurationMS: t.ran.Milliseconds(),
	}
}

// conflict ends a message whose turn key was used before with other data. It is never run
// under that key; a workflow may ask for it to be a turn of its own.
func (h *Handlers) conflict(t *turn) inbound.Disposition {
	h.Metrics.Conflicts.Inc()
	h.often(t.m, slog.LevelWarn, "turn key used again with other data", "", "workflow", throttle.Cut(t.Workflow), "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "seq", t.m.Lease.Seq)
	event, err := events.Encode(events.KindTurnConflict, &events.TurnConflict{
		Kind: events.KindTurnConflict, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn,
		Agent: t.Agent, WorkflowName: t.Workflow, Fingerprint: t.hash,
	}, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(t.App, t.Chat, events.KindTurnConflict), event)
	}
	if err != nil {
		h.often(t.m, slog.LevelWarn, "turn_conflict could not be published", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
	}
	return h.dead(t.m, deadletter.ReasonConflict, fmt.Errorf(
		"turn key %.80q was used before in this chat with other data (fingerprint of this one %s): send a new turn key, or a run_id for each run of the chat, or set on_key_reuse: run in the workflow", t.TurnID.Turn, t.hash[:16]))
}

// checkSubject holds the tokens of the subject against the ids of the body, so that rights on
// subjects are rights on tenants and chats.
func (h *Handlers) checkSubject(m *message, e *events.StructuredOutputReady) error {
	return h.checkTokens(m, events.KindStructuredOutputReady, e.App, e.Workflow, e.Chat)
}

func (h *Handlers) checkTokens(m *message, kind, app, workflow, chat string) error {
	in, ok := h.Space.ParseIn(m.Subject)
	if !ok {
		return fmt.Errorf("subject %.200q is not <prefix>.in.<pool>.<kind>.<app>.<workflow>.<chat>", m.Subject)
	}
	want := subjects.Inbound{
		Pool: in.Pool, Kind: kind, App: subjects.Token(app), Workflow: subjects.Token(workflow), Chat: subjects.Token(chat),
	}
	if in != want {
		return fmt.Errorf("the body belongs on subject %.300q, it came on %.300q", h.Space.In(in.Pool, kind, app, workflow, chat), m.Subject)
	}
	return nil
}
