package auth

import (
	"context"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
)

// Role is a right that a token has in addition to its user's.
type Role string

// The roles. Others in a token have no meaning.
const (
	RoleOperator Role = "operator" // may use the console to change turns
	RoleService  Role = "service"  // may name any user of its tenants
)

// Me names the user of the token, where a path must name a user.
const Me = "me"

// Anonymous is the user of requests in development that name none.
const Anonymous = "anonymous"

// Identity is the sender of a request: what its token allows. The zero Identity may do nothing.
type Identity struct {
	Apps      []string  // the tenants; at least one, unless AnyApp
	AnyApp    bool      // any tenant: development alone
	User      string    // the user, or the name of a service
	Chats     []string  // the only chats that may be used; nil for all that the user may use
	Workflows []string  // the only workflows that may be used; nil for all
	Roles     []Role    // additional rights
	Expires   time.Time // from when the token is refused, leeway included: connections end then; zero for never

	revoked context.Context      //nolint:containedctx // ends when the token is revoked; nil if it cannot be
	watch   func() (stop func()) // notices while a connection is open that the token is revoked; nil if nothing has to
}

// Has reports whether the token has a role.
func (id *Identity) Has(role Role) bool { return slices.Contains(id.Roles, role) }

// Context returns a context for a connection of the sender. It ends with its parent, and when the token expires or is
// revoked; then its [context.Cause] is an [*Error], [ErrTokenExpired] or [ErrTokenInvalid]. Call cancel when the connection
// has ended.
func (id *Identity) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	stop := func() bool { return true }
	if id.revoked != nil {
		stop = context.AfterFunc(id.revoked, func() { end(context.Cause(id.revoked)) })
	}
	unwatch := func() {}
	if id.watch != nil {
		unwatch = id.watch()
	}
	timeout := context.CancelFunc(func() {})
	if !id.Expires.IsZero() {
		ctx, timeout = context.WithDeadlineCause(ctx, id.Expires, expired())
	}
	return ctx, func() {
		unwatch()
		stop()
		timeout()
		end(nil)
	}
}

// Revoked is closed when the token is revoked before it expires. It is nil, which blocks for ever, if the token can only
// expire. [Identity.Context] includes it.
func (id *Identity) Revoked() <-chan struct{} {
	if id.revoked == nil {
		return nil
	}
	return id.revoked.Done()
}

// Target is what a request names. An empty field is not named.
type Target struct{ App, User, Workflow, Chat string }

// Resolve returns what a request is about: the tenant and the user of the token where it names none or, as the user,
// [Me]. A request that names what the token does not allow is refused with [ErrForbidden], one that must name a tenant
// since the token has several with [ErrMissingField].
//
// A field that is not named is not checked: of a token for some workflows or chats, an endpoint that learns later to which
// of them a request belongs resolves it again with that field.
func (id *Identity) Resolve(t Target) (Target, error) {
	var err *Error
	if t.App, err = id.app(t.App); err != nil {
		return Target{}, err
	}
	if t.User, err = id.user(t.User); err != nil {
		return Target{}, err
	}
	if t.Workflow != "" && id.Workflows != nil && !slices.Contains(id.Workflows, t.Workflow) {
		return Target{}, forbidden("the token does not allow this workflow: use a token for it")
	}
	if t.Chat != "" && id.Chats != nil && !slices.Contains(id.Chats, t.Chat) {
		return Target{}, forbidden("the token does not allow this chat: use a token for it")
	}
	return t, nil
}

// MayUse is [Identity.Resolve] without its result.
func (id *Identity) MayUse(app, user, workflow, chat string) error {
	_, err := id.Resolve(Target{App: app, User: user, Workflow: workflow, Chat: chat})
	return err
}

func (id *Identity) app(named string) (string, *Error) {
	switch {
	case named != "":
	case id.AnyApp:
		named = events.DefaultApp
	case len(id.Apps) == 1:
		named = id.Apps[0]
	case len(id.Apps) > 1:
		return "", &Error{Code: CodeMissingField, Msg: "app_id is missing: the token is valid for several tenants, name one of them"}
	}
	if named == "" || !id.AnyApp && !slices.Contains(id.Apps, named) {
		return "", forbidden("the token does not allow this tenant: use a token for it")
	}
	return named, nil
}

func (id *Identity) user(named string) (string, *Error) {
	if named == "" || named == Me {
		named = id.User
	}
	if named == "" || named != id.User && !id.Has(RoleService) {
		return "", forbidden("the token does not allow this user: name the user of the token, or use a token with the role service")
	}
	return named, nil
}

// MayUseChat checks a chat that belongs to owner, the user that its first turn names, for a request that [Identity.Resolve]
// returned. A chat without an owner is open to its tenant. A service that names a user may use what this user may use,
// one that does not may use all chats of its tenants.
func (id *Identity) MayUseChat(t Target, owner string) error {
	if owner == "" || owner == t.User || t.User == id.User && id.Has(RoleService) {
		return nil
	}
	return forbidden("the chat belongs to another user: use a token of that user")
}
