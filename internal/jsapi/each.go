package jsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// eachBatch is how many messages one request of [Each] reads at most.
const eachBatch = 256

// headerPending is how many messages come after a batch.
const headerPending = "Nats-Num-Pending"

// Statuses of messages in which the server ends a batch, or refuses it.
const (
	statusEndOfBatch   = "204"
	statusNotFound     = "404"
	statusNoResponders = "503"
)

// Each calls each for the messages of a stream whose subjects match a filter, in order. It needs no consumer, only the
// right to publish to $JS.API.DIRECT.GET.<stream>; the stream has to allow direct reads. Any replica answers, which
// may lag behind the leader. The error is [nats.ErrNoResponders] if no server has the stream at the moment. It ends
// after [Timeout].
func Each(ctx context.Context, nc *nats.Conn, stream, filter string, each func(m *jetstream.RawStreamMsg)) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return fmt.Errorf("read stream %s: %w", stream, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // a connection that was closed has no subscriptions
	for next := uint64(1); next > 0; {
		if next, err = eachOfBatch(ctx, nc, sub, stream, filter, next, each); err != nil {
			return fmt.Errorf("read stream %s: %w", stream, err)
		}
	}
	return nil
}

// eachOfBatch reads the messages from a sequence on, and returns where the next batch begins: 0 if this is the last one.
func eachOfBatch(ctx context.Context, nc *nats.Conn, sub *nats.Subscription, stream, filter string, from uint64,
	each func(m *jetstream.RawStreamMsg),
) (next uint64, err error) {
	body, err := json.Marshal(struct {
		Get

		Batch int `json:"batch"`
	}{Get{Seq: from, Next: filter}, eachBatch})
	if err != nil {
		return 0, fmt.Errorf("encode the request: %w", err)
	}
	if err := nc.PublishRequest("$JS.API.DIRECT.GET."+stream, sub.Subject, body); err != nil {
		return 0, err //nolint:wrapcheck // Each names the stream
	}
	for next = from; ; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, err //nolint:wrapcheck // Each names the stream
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			found, err := stored(m)
			if err != nil {
				return 0, err
			}
			each(found)
			next = found.Sequence + 1
		case statusEndOfBatch:
			if pending := m.Header.Get(headerPending); pending == "" || pending == "0" || next == from {
				return 0, nil
			}
			return next, nil
		case statusNotFound:
			return 0, nil
		case statusNoResponders:
			return 0, nats.ErrNoResponders
		default:
			return 0, fmt.Errorf("the server refuses the read: %s %s", status, m.Header.Get("Description"))
		}
	}
}

// stored decodes a message of a batch.
func stored(m *nats.Msg) (*jetstream.RawStreamMsg, error) {
	seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil || seq == 0 {
		return nil, errors.New("a message of the reply has no sequence")
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("message %d of the reply has no time: %w", seq, err)
	}
	return &jetstream.RawStreamMsg{Subject: m.Header.Get(jetstream.SubjectHeader), Sequence: seq, Time: at, Header: m.Header, Data: m.Data}, nil
}
