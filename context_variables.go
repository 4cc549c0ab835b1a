package oneturn

import (
	"context"
	"fmt"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
)

// ChatID names a chat, for [Client.ContextVariables].
type ChatID struct {
	App  string // tenant, "default" if empty
	Chat string
	// Workflow whose declared variables are returned, also those that nothing has set. By default the workflow of the newest turn or
	// message of the chat.
	Workflow string
}

// ContextVariables returns the context variables of a chat as they are now, and what was decided for its newest messages. A
// running worker has to reply, else it fails with [ErrNoWorker]. The client needs the right to publish on
// <prefix>.api.<app>.context.
func (c *Client) ContextVariables(ctx context.Context, id ChatID) (*api.Context, error) {
	if id.Chat == "" {
		return nil, &events.Error{Code: events.CodeBadArgs, Msg: "context variables: no chat is named: set ChatID.Chat"}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := request[api.Context](ctx, c, tenant(id.App), api.VerbContext, api.ContextRequest{Chat: id.Chat, Workflow: id.Workflow})
	if err != nil {
		return nil, fmt.Errorf("context variables of chat %.80q: %w", id.Chat, err)
	}
	return found, nil
}
