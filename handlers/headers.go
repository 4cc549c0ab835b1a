package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/mutant"
)

const (
	headerBatch = 500              // messages that a reader of headers asks for at once
	readerIdle  = 30 * time.Second // after which the server removes a reader that has vanished
	readers     = 3                // that one read opens at most, each on a replica of the server's choice
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
// nothing is pending. So Read succeeds only if it has come to last, or if the leader has no message
// between. Otherwise another reader goes on, and after three of them the error is [errShort].
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
	if next > last || mutant.Planted(mutant.ShortReadIsWhole) {
		return nil
	}
	found, err := leaderRead(ctx, h.JS.Conn(), stream, fmt.Sprintf(`{"seq":%d,"next_by_subj":">"}`, next))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil
	case err == nil && found <= last:
		return fmt.Errorf("%w: %d is the first of them, and %d the last to read", errShort, found, last)
	}
	return err
}

// readFrom reads with one reader, as far as its replica knows the stream. It returns the sequence
// behind the last message that it has read.
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
	pace := newPacer(h.Rate)
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
		if err := pace.wait(ctx); err != nil {
			return next, err
		}
	}
	return next, nil
}

func (h Headers) next(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = putTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("wait for a message: %w", err)
	}
	return m, nil
}

// pacer spreads steps over time: after every hundredth of a second's worth it waits for the
// clock to catch up, so that work in bulk leaves the server free for turns.
type pacer struct {
	rate  int // steps a second, 0 = no limit
	batch int
	done  int
	start time.Time
}

func newPacer(rate int) *pacer { return &pacer{rate: rate, batch: max(rate/100, 1), start: time.Now()} }

// wait counts a step.
func (p *pacer) wait(ctx context.Context) error {
	p.done++
	if p.rate <= 0 || p.done%p.batch != 0 {
		return ctx.Err()
	}
	ahead := time.Duration(p.done)*time.Second/time.Duration(p.rate) - time.Since(p.start)
	if ahead <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(ahead)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
