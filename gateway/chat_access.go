package gateway

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/subjects"
)

// A chat belongs to the user of its first turn that names one. The owner never changes while the chat is stored, so one
// that was read is remembered; that a chat has no owner yet is read each time, by requests that come at the same time
// together. A token for some workflows is checked with the newest turn of the chat: the workflow in a path is what the client names.

// Bounds of the owners that are remembered, of all tenants together: an owner that is forgotten costs one more read, within the search budget
// of its tenant and user, and no request is decided otherwise.
const (
	ownedChats = 10_000
	ownedFor   = time.Minute
)

// ownedChat is a chat with its owner.
type ownedChat struct{ app, chat, owner string }

// mayUseChat refuses a chat that belongs to another user. It returns the owner, "" if the chat has none yet.
func (g *Gateway) mayUseChat(ctx context.Context, id *auth.Identity, t auth.Target) (owner string, err error) {
	if id.Workflows == nil && g.journal(ctx).owned.Has(ownedChat{t.App, t.Chat, t.User}, time.Now()) {
		return t.User, nil
	}
	return g.ownerFor(ctx, id, t)
}

// ownerFor is [Gateway.mayUseChat] with the owner as the journal has it now.
func (g *Gateway) ownerFor(ctx context.Context, id *auth.Identity, t auth.Target) (string, error) {
	j := g.journal(ctx)
	owner, err := j.owners.of(ctx, chatKey{t.App, t.Chat}, func(ctx context.Context) (string, error) {
		return j.reader.Owner(ctx, subjects.Token(t.App), t.Chat)
	})
	if err != nil {
		return "", err
	}
	if err := id.MayUseChat(t, owner); err != nil {
		return "", err
	}
	if id.Workflows != nil {
		if err := g.mayUseWorkflow(ctx, id, t); err != nil {
			return "", err
		}
	}
	if owner == t.User {
		j.owned.Add(ownedChat{t.App, t.Chat, owner}, time.Now())
	}
	return owner, nil
}

// mayUseWorkflow refuses a chat whose newest turn is of a workflow that the token does not allow.
func (g *Gateway) mayUseWorkflow(ctx context.Context, id *auth.Identity, t auth.Target) error {
	facts, err := g.journal(ctx).reader.ChatFacts(ctx, subjects.Token(t.App), t.Chat)
	if err != nil || facts.Workflow == "" {
		return err
	}
	return id.MayUse(t.App, t.User, facts.Workflow, t.Chat)
}
