package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/presence"
	"github.com/oneturn/oneturn/subjects"
)

// LeaseHeld returns the function that reports whether the message of a lease is still in its stream, as the leader of
// the stream knows it. A lease on a stream of another prefix is not held.
func LeaseHeld(js jetstream.JetStream, space subjects.Space) func(context.Context, idempotency.Lease) (bool, error) {
	return func(ctx context.Context, l idempotency.Lease) (bool, error) {
		if !ofSpace(l, space) {
			return false, nil
		}
		_, err := jsapi.Read(ctx, js.Conn(), l.Stream, jsapi.Get{Seq: l.Seq})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// ofSpace reports whether a lease names a message of a stream that has leases.
func ofSpace(l idempotency.Lease, space subjects.Space) bool {
	return l.Seq != 0 && (l.Stream == space.InStream() || l.Stream == space.TimersStream())
}

// ConfirmLeaseHeld is [LeaseHeld] for a takeover. A leader that was replaced and does not know it answers that
// it has no message that was stored since. So a message is gone only if the server that reports it has seen
// a later one, or as many messages. If the stream does not have so many, as one that was created again, a second read
// a second later decides.
func ConfirmLeaseHeld(js jetstream.JetStream, space subjects.Space) func(context.Context, idempotency.Lease) (bool, error) {
	return func(ctx context.Context, l idempotency.Lease) (bool, error) {
		if !ofSpace(l, space) {
			return false, nil
		}
		held, seen, err := findLease(ctx, js, l)
		if err != nil || held || seen {
			return held, err
		}
		if err := pause.For(ctx, presence.Again); err != nil {
			return false, err
		}
		held, _, err = findLease(ctx, js, l)
		return held, err
	}
}

// findLease reports whether the message of a lease is in its stream, and if it is not, whether the server
// has seen it.
func findLease(ctx context.Context, js jetstream.JetStream, l idempotency.Lease) (held, seen bool, err error) {
	found, err := jsapi.Read(ctx, js.Conn(), l.Stream, jsapi.Get{Seq: l.Seq, Next: ">"})
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err == nil && found.Seq == l.Seq, err == nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	stream, err := js.Stream(ctx, l.Stream)
	if err != nil {
		return false, false, fmt.Errorf("look for the message of a lease in %s: %w", l.Stream, err)
	}
	return false, stream.CachedInfo().State.LastSeq >= l.Seq, nil
}
