// An MCP server with two tools, on nothing but the SDK: find_trains only reads, book_train books a
// seat, and asks a person first if it is expensive.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// expensive is the price from which a booking needs approval.
const expensive = 100

type journey struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type train struct {
	Train string `json:"train"`
	Euros int    `json:"euros"`
}

type trains struct {
	Message string  `json:"message"`
	Trains  []train `json:"trains"`
}

// findTrains reports progress: the server of a railway is slow.
func findTrains(ctx context.Context, req *mcp.CallToolRequest, in journey) (*mcp.CallToolResult, trains, error) {
	err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "asking the railway",
	})
	if err != nil {
		return nil, trains{}, fmt.Errorf("report progress: %w", err)
	}
	if in.From == in.To {
		return nil, trains{}, errors.New("that is where you are")
	}
	found := []train{{"ICE 71", 64}, {"TGV 9575", 120}}
	return nil, trains{fmt.Sprintf("%d trains from %s to %s.", len(found), in.From, in.To), found}, nil
}

type seat struct {
	Train string `json:"train"`
	Euros int    `json:"euros"`
}

type booking struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Number  string `json:"number,omitempty"`
}

// bookTrain asks by its result: it returns what it wants to know, and is called again with the
// answer. It keeps nothing in between, so it does not matter who calls again, and when.
func bookTrain(_ context.Context, req *mcp.CallToolRequest, in seat) (*mcp.CallToolResult, booking, error) {
	if in.Euros > expensive {
		answer, ok := req.Params.InputResponses["approve"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"approve": &mcp.ElicitParams{
				Mode: "form", Message: fmt.Sprintf("Book %s for %d euros?", in.Train, in.Euros),
				RequestedSchema: map[string]any{
					"type": "object", "required": []string{"class"},
					"properties": map[string]any{"class": map[string]any{"type": "string", "enum": []string{"first", "second"}}},
				},
			}}}, booking{}, nil
		}
		if answer.Action != "accept" {
			return nil, booking{Status: "cancelled", Message: "Nothing was booked."}, nil
		}
		in.Train += fmt.Sprintf(", %s class", answer.Content["class"])
	}
	// The same for every run of this call: a railway that knows it books one seat, however often it is asked.
	key, _ := req.Params.Meta["oneturn/idempotency_key"].(string)
	return nil, booking{"success", "Booked: " + in.Train + ".", key[:min(8, len(key))]}, nil
}

func serve(ctx context.Context, transport mcp.Transport) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "railway", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "find_trains", Description: "Trains between two cities", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, findTrains)
	mcp.AddTool(server, &mcp.Tool{Name: "book_train", Description: "Books a seat"}, bookTrain)
	return server.Run(ctx, transport) //nolint:wrapcheck // main names the program
}

func main() {
	if err := serve(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "railway:", err)
		os.Exit(1)
	}
}
