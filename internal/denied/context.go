package denied

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/subjects"
)

// Context returns a context that ends when the server denies nc a right without which a request cannot
// succeed, so that a command fails immediately, with the right, and not when its time limit is over.
// A denied subscription to events only makes a wait slower, and ends nothing: it is passed on, as every
// other error is, to the handler that nc had.
func Context(ctx context.Context, nc *nats.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if r, ok := parse(err); ok && (r.publish || r.inbox()) {
			cancel(&rightError{r})
			return
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return ctx
}

// Because replaces an error by the denial that ended its context, if one did.
func Because(ctx context.Context, err error) error {
	var d *rightError
	if err != nil && errors.As(context.Cause(ctx), &d) {
		return d
	}
	return err
}

// rightError is a right that the server denies and without which a command cannot succeed.
type rightError struct{ right }

// Error implements error.
func (e *rightError) Error() string {
	if e.inbox() {
		return fmt.Sprintf("the server denies this user replies on %.300q: set --inbox-prefix to the inbox prefix of the user", e.subject)
	}
	return fmt.Sprintf("the server denies this user to publish to %.300q: check that the tenant is the user's "+
		"(--app, context.app_id in events), and that its role includes the command", e.subject)
}

// inbox reports whether the right is to receive replies where every connection does by default. A user
// with separate inboxes is denied the default ones, and must not get them: it would read the replies of
// others.
func (r right) inbox() bool {
	return !r.publish && strings.HasPrefix(r.subject, subjects.DefaultInboxes+".")
}
