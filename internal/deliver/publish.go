package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/denied"
)

// How long an acknowledgement is waited for before the message is published again: at first, and at most, since a server that is slow
// must not get more and more copies; and how long in all if the context has no deadline.
const (
	firstAttempt    = 3 * time.Second
	longestAttempt  = 12 * time.Second
	withoutDeadline = 15 * time.Second
)

// ErrNotAcknowledged means that a message was published and that the outcome is unknown: its acknowledgement has not arrived.
var ErrNotAcknowledged = errors.New("the acknowledgement has not arrived, and the message may be stored: publish it again, which is harmless")

// Publish publishes a message that is harmless when it is stored more than once, and waits for the acknowledgement of its stream. If none
// arrives within 3 s, later within up to 12 s, it publishes the same message again, once there is a connection, until ctx ends; without a
// deadline of ctx for 15 s. An error matches [ErrNotAcknowledged] if the message may be stored all the same. A refusal is returned immediately,
// but the denial of a right, which no reply reports, after an attempt.
func Publish(ctx context.Context, js jetstream.JetStream, m *nats.Msg) (*jetstream.PubAck, error) {
	conn := js.Conn()
	if conn.IsClosed() {
		return nil, nats.ErrConnectionClosed
	}
	return untilAcknowledged(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		before := conn.LastError()
		ack, err := js.PublishMsg(ctx, m)
		if last := conn.LastError(); unanswered(err) && denied.Publish(last, m.Subject) && last != before { //nolint:errorlint // the same denial as before
			return nil, last //nolint:wrapcheck // the caller names the subject
		}
		return ack, err //nolint:wrapcheck // the caller names the subject
	}, func(ctx context.Context) { awaitConnection(ctx, conn) })
}

// untilAcknowledged sends until there is an acknowledgement, a refusal, or ctx ends. Before it sends again it calls connected, which waits
// for a connection: while there is none, each attempt would put another copy into the buffer of the connection.
func untilAcknowledged(ctx context.Context, send func(context.Context) (*jetstream.PubAck, error), connected func(context.Context)) (*jetstream.PubAck, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, withoutDeadline)
		defer cancel()
	}
	sent := false
	for wait := firstAttempt; ctx.Err() == nil; wait = min(2*wait, longestAttempt) {
		attempt, cancel := context.WithTimeout(ctx, wait)
		ack, err := send(attempt)
		cancel()
		switch {
		case err == nil:
			return ack, nil
		case errors.Is(err, nats.ErrConnectionClosed): // while it waited
			return nil, unknown(err)
		case unanswered(err):
			sent = true
		case !sent:
			return nil, err
		case !errors.Is(err, nats.ErrReconnectBufExceeded): // the connection was lost again
			return nil, unknown(err)
		}
		connected(ctx)
	}
	if sent {
		return nil, unknown(ctx.Err())
	}
	return nil, ctx.Err()
}

func unknown(err error) error { return fmt.Errorf("%w: %w", ErrNotAcknowledged, err) }

// unanswered reports whether an attempt may have stored its message, and another one may succeed.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrDisconnected)
}

// awaitConnection waits until a connection is up, is closed for good, or ctx ends.
func awaitConnection(ctx context.Context, conn *nats.Conn) {
	status := conn.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer conn.RemoveStatusListener(status)
	for !conn.IsConnected() && !conn.IsClosed() {
		select {
		case <-status:
		case <-ctx.Done():
			return
		}
	}
}
