package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxLooked is how many turns of a chat are looked at for the one that a cancel names. A chat
// with more of them in the queue may have it.
const maxLooked = 16

// Published returns the function that asks the inbound stream's leader whether it holds a
// message of a turn: a message leaves the stream when its turn has ended. The error is
// [idempotency.ErrNotFound] if the leader does not know the message that asks: then it is no
// leader any more, or somebody else has settled the message.
func Published(js jetstream.JetStream, space subjects.Space) func(context.Context, events.TurnID, idempotency.Lease) (bool, error) {
	held := LeaseHeld(js, space)
	return func(ctx context.Context, id events.TurnID, asks idempotency.Lease) (bool, error) {
		from := uint64(1)
		for range maxLooked {
			m, err := leaderRead(ctx, js.Conn(), space.InStream(), fmt.Sprintf(`{"seq":%d,"next_by_subj":%q}`, from, space.TurnsOfChat(id.App, id.Chat)))
			if errors.Is(err, idempotency.ErrNotFound) {
				there, err := held(ctx, asks)
				if err == nil && !there {
					err = idempotency.ErrNotFound
				}
				return false, err
			}
			if err != nil {
				return false, err
			}
			if t, err := events.DecodeTurn(m.Data); err == nil && t.TurnID == id {
				return true, nil
			}
			from = m.Seq + 1
		}
		return true, nil
	}
}
