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
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// beforeTime bounds the look at a turn before it is cancelled.
const beforeTime = 2 * time.Second

// before describes a turn whose cancel request is not what it seems: one that no worker has claimed,
// whose key may be misspelt, and one that has ended already. It is "" for any other, and if no worker
// answers: the request is published all the same.
func before(ctx context.Context, nc *nats.Conn, prefix string, id oneturn.TurnID) string {
	space, err := subjects.New(prefix)
	if err != nil {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, beforeTime)
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
				return fmt.Sprintf("turn %s of chat %s had ended already: its response stays as it is", quoted(id.Turn), quoted(id.Chat))
			}
		}
		switch {
		case len(page.Records) == 0 && !known:
			return fmt.Sprintf("no worker has claimed a turn %s of chat %s: one that is published under this key, now or later, ends at once as cancelled; "+
				"check --chat, --turn and --run", quoted(id.Turn), quoted(id.Chat))
		case page.Next <= q.From:
			return ""
		}
		q.From = page.Next
	}
}
