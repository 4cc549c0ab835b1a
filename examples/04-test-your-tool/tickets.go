// Package tickets is a tool with the tests that it deserves: see docs/testing.md.
package tickets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/oneturn/oneturn"
)

// Ticket is the input of the tool, and the model of the agent's output.
type Ticket struct {
	Title string `json:"title"`
}

// Desk is where tickets are opened: a folder here. It honours the key it is given.
type Desk struct{ Dir string }

// Open opens a ticket, or finds the one that an earlier run of the turn has opened.
func (d Desk) Open(ctx context.Context, in Ticket) (string, error) {
	file := filepath.Join(d.Dir, oneturn.CallFrom(ctx).IdempotencyKey)
	if err := os.WriteFile(file, []byte(in.Title), 0o600); err != nil {
		return "", fmt.Errorf("open a ticket: %w", err)
	}
	return "opened: " + in.Title, nil
}

// Tool binds a function to the agent whose output it takes.
func Tool(open func(context.Context, Ticket) (string, error)) oneturn.Tool {
	return oneturn.NewTool("open_ticket", open, oneturn.For("Support", "TicketAgent", "Ticket"), oneturn.WithEffect(oneturn.Keyed))
}
