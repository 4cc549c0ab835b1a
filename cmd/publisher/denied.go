package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/subjects"
)

// denial is a right that the server denies and without which the command cannot succeed.
type denial struct{ action, subject string }

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// denied ends the context when the server denies nc a right that the command needs, so that the
// command fails at once, with the right, and not when its time limit is over. A denied subscription
// to events only makes a wait slower, and ends nothing.
func denied(ctx context.Context, nc *nats.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	before := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		m := violation.FindStringSubmatch(err.Error())
		if m != nil && (strings.EqualFold(m[1], "publish") || strings.HasPrefix(m[2], subjects.DefaultInboxes+".")) {
			cancel(&denial{strings.ToLower(m[1]), m[2]})
			return
		}
		if before != nil {
			before(nc, sub, err)
		}
	})
	return ctx
}

// Error implements error.
func (d *denial) Error() string {
	if d.action == "subscription" {
		return fmt.Sprintf("the server denies this user replies on %.300q: set --inbox-prefix to the inbox prefix of the user", d.subject)
	}
	return fmt.Sprintf("the server denies this user to publish to %.300q: check that the tenant is the user's "+
		"(--app, context.app_id in events), and that its role includes the command", d.subject)
}

// because replaces an error that a denial has caused by the denial.
func because(ctx context.Context, err error) error {
	var d *denial
	if err != nil && errors.As(context.Cause(ctx), &d) {
		return d
	}
	return err
}
