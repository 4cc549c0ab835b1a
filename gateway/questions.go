package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/subjects"
)

// question is an open question as frontends get it.
type question struct {
	Sequence    uint64    `json:"sequence"`
	ToolCallID  string    `json:"tool_call_id"`
	Chat        string    `json:"chat_id"`
	Run         string    `json:"run_id,omitempty"`
	Turn        string    `json:"turn"`
	Workflow    string    `json:"workflow_name"`
	Agent       string    `json:"agent"`
	Tool        string    `json:"tool_name"`
	Interaction string    `json:"interaction_type"`
	Component   string    `json:"component_type"`
	Display     string    `json:"display,omitempty"`
	User        string    `json:"user_id,omitempty"`
	Secret      bool      `json:"secret"`
	AskedAt     time.Time `json:"asked_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`

	Schema       json.RawMessage `json:"schema,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"` // missing over 64 KiB: it is in the event
	PayloadBytes int             `json:"payload_bytes,omitempty"`
}

func questionOf(q *api.Question) question {
	return question{
		Sequence: q.Sequence, ToolCallID: q.ToolCallID, Chat: q.Chat, Run: q.Run, Turn: q.Turn, Workflow: q.Workflow, Agent: q.Agent, Tool: q.Tool,
		Interaction: q.Interaction, Component: q.Component, Display: q.Display, User: q.User, Secret: q.Secret, AskedAt: q.AskedAt, ExpiresAt: q.ExpiresAt,
		Schema: q.Schema, Payload: q.Payload, PayloadBytes: q.PayloadBytes,
	}
}

// waits is GET /api/chats/{app}/{chat}/waits: the open questions of a chat.
func (g *Gateway) waits(c *call) error {
	if _, err := g.mayUseChat(c.r.Context(), c.id, c.target); err != nil {
		return err
	}
	open, err := g.openQuestions(c.r.Context(), c.target)
	if err != nil {
		return err
	}
	list := make([]question, len(open))
	for i := range open {
		list[i] = questionOf(&open[i])
	}
	writeJSON(c.w, http.StatusOK, struct {
		Status  int        `json:"status"`
		Code    string     `json:"code"`
		Message string     `json:"message"`
		Waits   []question `json:"waits"`
	}{http.StatusOK, codeOK, "the open questions of the chat", list})
	return nil
}

// codeOK is the code of a reply that has what was asked for.
const codeOK = "ok"

// mostOpen bounds the open questions of a chat that are read.
const mostOpen = 1_000

// openQuestions reads the questions of a chat that are open now.
func (g *Gateway) openQuestions(ctx context.Context, t auth.Target) ([]api.Question, error) {
	open := []api.Question{}
	for from := uint64(0); len(open) < mostOpen; {
		page, err := g.journal(ctx).reader.Questions(ctx, subjects.Token(t.App), t.Chat, from)
		if err != nil {
			return nil, err
		}
		open = append(open, page.Questions...)
		if from = page.Next; from == 0 {
			break
		}
	}
	return open, nil
}
