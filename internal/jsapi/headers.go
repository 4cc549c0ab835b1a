package jsapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Headers are read by an ephemeral consumer on any replica (readFrom). Because a replica may lag, the leader decides whether
// the read is complete (complete), and another reader continues if it is not.

const (
	headerBatch = 500              // messages that a reader of headers requests together
	readerIdle  = 30 * time.Second // after which the server removes a reader whose client is gone
	readers     = 3                // that one read opens at most, each on a replica that the server chooses
)

// Headers reads the headers of stored messages, never their contents.
type Headers struct {
	JS jetstream.JetStream
	// Timeout bounds the wait for one message. Defaults to 5 s.
	Timeout time.Duration
	// Rate is how many messages a second are read at most. 0 means no limit.
	Rate int
}

// Read calls each for the messages of a stream from sequence start to last, in order. The size
// of the contents is in header Nats-Msg-Size. The reader is an ephemeral consumer without
// acknowledgements that is removed at the end. It has no filter: the server would first count
// what matches, and hold every writer meanwhile, for a second on a journal of 400,000 records.
//
// The server places the reader on any replica, which may lag behind the leader and report that
// nothing is pending. So Read succeeds only if it has reached last, or if the leader has no message
// between. Otherwise another reader continues, and after three of them the error is [errShort].
func (h Headers) Read(ctx context.Context, stream string, start, last uint64,
	each func(m jetstream.Msg, meta *jetstream.MsgMetadata),
) (err error) {
	next := max(start, 1)
	for range readers {
		if next, err = h.readFrom(ctx, stream, next, last, each); err == nil {
			err = h.complete(ctx, stream, next, last)
		}
		if !errors.Is(err, errShort) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("read the headers of %s: %w", stream, err)
	}
	return nil
}

// errShort is the error of a read that a replica ended before the last message.
var errShort = errors.New("the replica that was read lacks messages that the leader has")

// complete returns errShort if the leader has a message from sequence next to last.
func (h Headers) complete(ctx context.Context, stream string, next, last uint64) error {
	if next > last {
		return nil
	}
	found, err := Read(ctx, h.JS.Conn(), stream, Get{Seq: next, Next: ">"})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err == nil && found.Seq <= last:
		return fmt.Errorf("%w: %d is the first of them, and %d the last to read", errShort, found.Seq, last)
	}
	return err
}

// readFrom reads with one reader, as far as its replica knows the stream. It returns the sequence
// after the last message that it has read.
func (h Headers) readFrom(ctx context.Context, stream string, next, last uint64,
	each func(m jetstream.Msg, meta *jetstream.MsgMetadata),
) (uint64, error) {
	reader, err := h.JS.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		HeadersOnly: true, InactiveThreshold: readerIdle,
	})
	if err != nil {
		return next, fmt.Errorf("open a reader: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = h.JS.DeleteConsumer(ctx, stream, reader.CachedInfo().Name) // the server removes it by itself when this fails
	}()
	if reader.CachedInfo().NumPending == 0 {
		return next, nil
	}
	messages, err := reader.Messages(jetstream.PullMaxMessages(headerBatch))
	if err != nil {
		return next, fmt.Errorf("open a reader: %w", err)
	}
	defer messages.Stop()
	pace := NewRateLimiter(h.Rate)
	for next <= last {
		m, err := h.next(ctx, messages)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			// What was still to come may have expired meanwhile.
			if info, errInfo := reader.Info(ctx); errInfo == nil && info.NumPending == 0 {
				return next, nil
			}
		}
		if err != nil {
			return next, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return next, fmt.Errorf("read a message: %w", err)
		}
		next = meta.Sequence.Stream + 1
		if next > last+1 {
			break
		}
		each(m, meta)
		if meta.NumPending == 0 {
			break
		}
		if err := pace.Wait(ctx); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (h Headers) next(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("wait for a message: %w", err)
	}
	return m, nil
}
