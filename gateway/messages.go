package gateway

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
)

// publishMessage publishes what a user has written into a chat. A message is stored once, under its id, however often it
// is published.
func (g *Gateway) publishMessage(ctx context.Context, id *auth.Identity, t auth.Target, m *oneturn.UserMessage) error {
	if _, err := g.mayUseChat(ctx, id, t); err != nil {
		return err
	}
	client, err := oneturn.NewClient(g.o.NATS, oneturn.ClientOptions{Prefix: g.o.Prefix, Pool: g.o.Pool})
	if err != nil {
		return err
	}
	_, err = client.PublishUserMessage(ctx, m)
	if errors.Is(err, events.ErrBadArgs) || errors.Is(err, events.ErrTooLarge) {
		return refusalOfBody(err)
	}
	return err
}
