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
	"github.com/oneturn/oneturn/subjects"
)

// warningTimeout bounds the reading of a turn before it is cancelled.
const warningTimeout = 2 * time.Second

// cancelWarning warns of a turn that is not claimed, because its key may be misspelt, and of one that has already
// ended. It is "" for others, and if no worker answers: the request is published in any case.
func cancelWarning(ctx context.Context, nc *nats.Conn, prefix string, id oneturn.TurnID) string {
	space, err := subjects.New(prefix)
	if err != nil {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, warningTimeout)
	defer stop()
	q := api.TurnRequest{Chat: id.Chat, Run: id.Run, Turn: id.Turn}
	for known := false; ; known = true {
		body, err := json.Marshal(q)
		if err != nil {
			return ""
		}
		m, err := nc.RequestWithContext(ctx, space.API(id.App, api.VerbTurn), body)
		if err != nil || m.Header.Get(micro.ErrorHeader) != "" {
			return ""
		}
		var page api.Page
		if json.Unmarshal(m.Data, &page) != nil {
			return ""
		}
		for i := range page.Records {
			if page.Records[i].Kind == events.KindToolResponse {
				return fmt.Sprintf("turn %s of chat %s has already ended: its response does not change", cli.ShellWord(id.Turn), cli.ShellWord(id.Chat))
			}
		}
		switch {
		case len(page.Records) == 0 && !known:
			return fmt.Sprintf("turn %s of chat %s is not claimed: it will end as cancelled when it is published; check --chat, --turn and --run", cli.ShellWord(id.Turn), cli.ShellWord(id.Chat))
		case page.Next <= q.From:
			return ""
		}
		q.From = page.Next
	}
}
