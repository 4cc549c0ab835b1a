package handlers

import (
	"context"

	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/subjects"
)

// message is a delivery with what the handlers have learned about it.
type message struct {
	inbound.Message
	deferral.State // how often the message was deferred before, and its age

	// tools ends when the tools of the worker have to stop, see [Handlers.Handle].
	tools context.Context //nolint:containedctx // the life of the worker, not of a call

	// clock is the server's when the message was received; the zero value stands for the clock of the
	// process.
	clock serverclock.Reading

	// secret is set if the message may hold the answer to a secret question: it is erased when it is acknowledged.
	secret bool
	// asksSecret is set if it answers a question that is known to be secret.
	asksSecret bool

	turns []subjects.Key // that it may be the lease of, as far as that is known
}

// offers is how often a message was delivered, including the deliveries before it was deferred.
func (m *message) offers() uint64 { return m.Before + m.Lease.Delivery }
