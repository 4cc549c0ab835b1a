package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// The reply to a correction: it is read once, before it is stored, and later workers take what is stored.

// Outcomes of a correction, for metrics.
const (
	correctionRead   = "read"   // its reply has an object, which may fit or not
	correctionUnread = "unread" // its reply has none
	correctionFailed = "failed" // the model has not replied
)

// correctionResponse returns the response of the model that was asked, with what was read in its reply.
func (h *Handlers) correctionResponse(ctx context.Context, s *chatMessage, t *turn, agent *bindings.Agent, out *engine.Outcome) (*events.ToolResponse, string, error) {
	r := t.response()
	r.ToolName, r.Attempts, r.DurationMS = t.Binding.Tool, out.Attempts, out.Duration.Milliseconds()
	if out.Code == "" && len(out.Payload) > planner.MaxCorrection {
		*out = engine.Failure(t.Binding.Tool, &events.Error{
			Code: events.CodeTooLarge, Op: "correct", Msg: fmt.Sprintf("the reply has %d bytes; the limit is %d", len(out.Payload), planner.MaxCorrection),
		})
	}
	if out.Code != "" {
		h.logThrottled(s.m, slog.LevelWarn, "the model that corrects an output has not replied; the response has the reason", "", "workflow", throttle.Cut(s.WorkflowName),
			"chat", throttle.Cut(s.ChatID), "message", throttle.Cut(s.MessageID), "tool", t.Binding.Tool, "code", out.Code, "err", events.LogText(out.Err))
		r.Status, r.Content, r.Code, r.Payload = out.Status, out.Content, out.Code, out.Payload
		return &r, correctionFailed, nil
	}
	c, outcome := h.readCorrection(s, agent, out.Payload)
	h.Metrics.Tokens(t.Binding, c.PromptTokens, c.CompletionTokens)
	data, err := json.Marshal(c)
	if err != nil { // it was JSON
		return nil, "", fmt.Errorf("encode the correction of a message: %w", err)
	}
	r.Status, r.Success, r.Content = events.StatusOK, true, "The model has replied."
	r.Payload, err = h.shrink(s.m.Held, ctx, t.Key, events.KindToolResponse, json.RawMessage(data), data)
	switch {
	case err == nil:
	case store.Decided(err):
		failTooLarge(&r)
		return &r, correctionFailed, nil
	default:
		return nil, "", err
	}
	return &r, outcome, nil
}

// readCorrection reads the reply of the model by the rules by which the output was read.
func (h *Handlers) readCorrection(s *chatMessage, agent *bindings.Agent, reply json.RawMessage) (c events.Correction, outcome string) {
	content, finishReason, usage, err := planner.ReadCorrection(reply)
	c = events.Correction{Content: content, FinishReason: finishReason, PromptTokens: int64(usage.Prompt), CompletionTokens: int64(usage.Completion)}
	e := &events.AgentMessage{Agent: s.Agent, Content: content, FinishReason: finishReason}
	var found agentjson.Found
	if err == nil {
		found, err = extract(e, agent)
	}
	if err != nil {
		c.Unread, c.Final = unreadOutput(e, agent, err), cutOff(finishReason, err)
		return c, correctionUnread
	}
	c.StructuredOutput, c.Repairs, c.Around, c.Warnings = found.Object, texts(found.Repairs), texts(found.Around), texts(found.Warnings)
	if agent.Tool == nil && agent.Model != nil { // else its turn is checked like any other
		c.Unread = misfitOutput(s.Agent, agent, found.Object)
	}
	return c, correctionRead
}

// storedCorrection reads a correction that is stored.
func (h *Handlers) storedCorrection(ctx context.Context, s *chatMessage, key subjects.Key, stored *idempotency.Record, used *events.Usage) (*correction, error) {
	c := &correction{}
	r, err := events.ReadResponse(stored.Data)
	corrupt := func() (*correction, error) {
		c.Final, c.usage = true, used.Plus(events.Usage{Calls: 1})
		c.failed = s.uncorrected(events.CodeStateCorrupt, "what is stored of the reply cannot be read")
		return c, nil
	}
	switch {
	case err != nil || stored.Err != nil:
		return corrupt()
	case r.Code != "":
		c.Final, c.usage = true, used.Plus(events.Usage{Calls: 1})
		c.failed = s.uncorrected(r.Code, r.Content)
		return c, nil
	}
	reading, done := store.Context(s.m.Held, ctx)
	defer done()
	payload, err := h.Blobs.Value(reading, key, events.KindToolResponse, r.Payload)
	switch {
	case errors.Is(err, store.ErrBlobGone):
		return corrupt()
	case err != nil:
		return nil, err
	}
	if c.Correction, err = events.ReadCorrection(payload); err != nil {
		return corrupt()
	}
	c.usage = used.Plus(events.Usage{Calls: 1, PromptTokens: c.PromptTokens, CompletionTokens: c.CompletionTokens})
	if c.Unread != nil {
		c.failed = rejectUnread(c.Unread)
	}
	return c, nil
}

// uncorrected is why a correction has no reply that can be used.
func (s *chatMessage) uncorrected(code events.Code, why string) *rejection {
	text := events.Clip(fmt.Sprintf("The output of agent %s could not be corrected: %s", s.Agent, strings.TrimSuffix(why, ".")) + ".")
	return &rejection{code: code, content: text, payload: failure(code, text)}
}
