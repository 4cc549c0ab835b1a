package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	headerBatch = 500              // messages that a reader of headers asks for at once
	readerIdle  = 30 * time.Second // after which the server removes a reader that has vanished
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
func (h Headers) Read(ctx context.Context, stream string, start, last uint64,
	each func(m jetstream.Msg, meta *jetstream.MsgMetadata),
) error {
	reader, err := h.JS.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(start, 1),
		HeadersOnly: true, InactiveThreshold: readerIdle,
	})
	if err != nil {
		return fmt.Errorf("read the headers of %s: %w", stream, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = h.JS.DeleteConsumer(ctx, stream, reader.CachedInfo().Name) // the server removes it by itself when this fails
	}()
	if reader.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := reader.Messages(jetstream.PullMaxMessages(headerBatch))
	if err != nil {
		return fmt.Errorf("read the headers of %s: %w", stream, err)
	}
	defer messages.Stop()
	pace := newPacer(h.Rate)
	for {
		m, err := h.next(ctx, messages)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			// What was still to come may have expired meanwhile.
			if info, errInfo := reader.Info(ctx); errInfo == nil && info.NumPending == 0 {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("read the headers of %s: %w", stream, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("read the headers of %s: %w", stream, err)
		}
		if meta.Sequence.Stream > last {
			return nil
		}
		each(m, meta)
		if meta.NumPending == 0 || meta.Sequence.Stream == last {
			return nil
		}
		if err := pace.wait(ctx); err != nil {
			return fmt.Errorf("read the headers of %s: %w", stream, err)
		}
	}
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
