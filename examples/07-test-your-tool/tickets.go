// Package tickets is a tool with the tests that it deserves: see docs/testing.md.
package tickets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

// Ticket is the input of the tool, and the model of the agent's output.
type Ticket struct {
	Title string `json:"title"`
}

// Desk is where tickets are opened: a folder here. It honours the key it is given.
type Desk struct{ Dir string }

// Open opens a ticket, or finds the one that an earlier run of the turn has opened.
func (d Desk) Open(ctx context.Context, in Ticket) (string, error) {
	file := filepath.Join(d.Dir, tool.Info(ctx).IdempotencyKey)
	if err := os.WriteFile(file, []byte(in.Title), 0o600); err != nil {
		return "", fmt.Errorf("open a ticket: %w", err)
	}
	return "opened: " + in.Title, nil
}

// Tool binds a function to the agent whose output it takes.
func Tool(open func(context.Context, Ticket) (string, error)) oneturn.Tool {
	return oneturn.NewTool("open_ticket", open, oneturn.ToolOptions{Workflow: "Support", Agent: "TicketAgent", Model: "Ticket", Effect: oneturn.Keyed})
}

// Close asks the user whether the ticket may be closed.
func Close(ctx context.Context, in Ticket) (string, error) {
	yes, err := tool.Ask[bool](ctx, tool.Question{Component: "Confirm", Payload: in})
	switch {
	case err != nil:
		return "", err
	case yes:
		return "closed: " + in.Title, nil
	default:
		return "still open: " + in.Title, nil
	}
}

// Closing binds Close to the agent whose output it takes. Its code before the question may run
// again; what follows the answer does not.
func Closing() oneturn.Tool {
	return oneturn.NewTool("close_ticket", Close, oneturn.ToolOptions{Workflow: "Support", Agent: "ClosingAgent", Model: "Ticket", Effect: oneturn.Replay})
}
