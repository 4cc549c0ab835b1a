// Package approval is a Go tool that asks a person before it publishes: see docs/questions.md.
package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

// Post is the input of the tool, and the model of the agent's output.
type Post struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// Decision is what a person answers.
type Decision struct {
	Status  string `json:"status"` // approved or rejected
	Comment string `json:"comment,omitempty"`
}

// Press saves and publishes posts.
type Press struct {
	Save    func(ctx context.Context, p Post) (draft int, err error)
	Publish func(ctx context.Context, draft int) error
}

// Approve saves a draft, asks, and publishes it if the answer is yes.
func (p Press) Approve(ctx context.Context, in Post) (map[string]any, error) {
	draft, err := tool.Step(ctx, "save the draft", func(ctx context.Context) (int, error) { return p.Save(ctx, in) })
	if err != nil {
		return nil, err
	}
	decision, err := tool.Ask[Decision](ctx, tool.Question{
		Payload: map[string]any{"title": in.Title, "body": in.Body, "draft": draft},
		Timeout: 24 * time.Hour,
	})
	switch {
	case errors.Is(err, tool.ErrExpired):
		return map[string]any{"status": "cancelled", "message": fmt.Sprintf("No decision within a day: draft %d is not published.", draft)}, nil
	case err != nil: // also tool.ErrParked: the answer runs the tool again
		return nil, err
	case decision.Status != "approved":
		return map[string]any{"status": "cancelled", "message": "Not published: " + decision.Comment}, nil
	}
	if err := p.Publish(ctx, draft); err != nil {
		return nil, err
	}
	return map[string]any{"status": "success", "message": in.Title + " is published."}, nil
}

// Tool binds it to the output of an agent. With a component its effect is replay.
func Tool(p Press) oneturn.Tool {
	return oneturn.NewTool("approve", p.Approve, oneturn.ToolOptions{Workflow: "Press", Agent: "PostAgent", Model: "Post", Component: "PostApproval", Display: "artifact"})
}
