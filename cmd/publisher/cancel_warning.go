package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// warningTimeout bounds the reading of a turn before it is cancelled.
const warningTimeout = 2 * time.Second

// cancelWarning warns of a turn that is not claimed, because its key may be misspelt, and of one that has already
// ended. It is "" for others, and if no worker answers: the request is published in any case.
func cancelWarning(ctx context.Context, nc *nats.Conn, prefix string, id oneturn.TurnID) (text string, ended bool) {
	switch known, ended, err := readTurn(ctx, nc, prefix, id); {
	case err != nil:
		return "", false
	case ended:
		return fmt.Sprintf("turn %s of chat %s has already ended: its response does not change", cli.ShellWord(id.Turn), cli.ShellWord(id.Chat)), true
	case !known:
		return fmt.Sprintf("turn %s of chat %s is not claimed: it will end as cancelled when it is published; check --chat, --turn and --run", cli.ShellWord(id.Turn), cli.ShellWord(id.Chat)), false
	default:
		return "", false
	}
}

// turnOfCall returns the turn that a tool_call_id means, which is the turn key of id. Without the run id of a turn that has one,
// its id does not lead to it.
func turnOfCall(ctx context.Context, nc *nats.Conn, prefix string, id oneturn.TurnID) (oneturn.TurnID, error) {
	for _, call := range query.CallsIn(id.Turn) {
		turn := id
		turn.Turn = events.TurnOfCallID(call, id.Run)
		known, _, err := readTurn(ctx, nc, prefix, turn)
		if err != nil {
			return id, fmt.Errorf("find the turn of %.200q: %w", id.Turn, err)
		}
		if known {
			return turn, nil
		}
	}
	return id, fmt.Errorf("no claimed turn of chat %.200q has %.200q: check --tool-call-id, and set --run if the turn has a run id, or omit --wait", id.Chat, id.Turn)
}

// readTurn reports whether a turn has records, and whether it has ended.
func readTurn(ctx context.Context, nc *nats.Conn, prefix string, id oneturn.TurnID) (known, ended bool, err error) {
	space, err := subjects.New(prefix)
	if err != nil {
		return false, false, err
	}
	ctx, stop := context.WithTimeout(ctx, warningTimeout)
	defer stop()
	for q := (api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn}); ; {
		body, err := json.Marshal(q)
		if err != nil {
			return false, false, fmt.Errorf("encode the request: %w", err)
		}
		m, err := nc.RequestWithContext(ctx, space.API(id.App, api.VerbTurn), body)
		if err != nil {
			return false, false, fmt.Errorf("read the turn: %w", err)
		}
		if text := m.Header.Get(micro.ErrorHeader); text != "" {
			return false, false, fmt.Errorf("read the turn: %s", text)
		}
		var page api.Page
		if err := json.Unmarshal(m.Data, &page); err != nil {
			return false, false, fmt.Errorf("read the turn: %w", err)
		}
		known = known || len(page.Records) > 0
		for i := range page.Records {
			if page.Records[i].Kind == events.KindToolResponse {
				return true, true, nil
			}
		}
		if page.Next <= q.From {
			return known, false, nil
		}
		q.From = page.Next
	}
}
