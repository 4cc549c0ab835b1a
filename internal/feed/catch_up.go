package feed

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/pause"
)

// tailState is how far the consumer at the end of the journal has come.
type tailState struct {
	consumer string // empty if there is none
	routed   uint64 // number of its deliveries that were routed
}

// CatchUp waits until everything that was stored before the call is routed. A follower that begins then has, before its boundary,
// everything that its client may have received from another process. The error is why ctx or the feed has ended before that.
func (f *Feeds) CatchUp(ctx context.Context) error {
	var stored tailState // the delivery of the last record that was stored before, and its consumer
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		now := f.tailState()
		if now.consumer != "" && now.consumer != stored.consumer {
			if info, err := f.tailInfo(ctx, now.consumer); err == nil {
				stored = tailState{now.consumer, info.Delivered.Consumer + info.NumPending}
				now = f.tailState()
			}
		}
		if now.consumer != "" && now.consumer == stored.consumer && now.routed >= stored.routed {
			return nil
		}
		if f.life.Err() != nil {
			return context.Cause(f.life)
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}

// tailInfo asks the server for the state of a consumer. The reply may be lost, so the request has less time than the caller.
func (f *Feeds) tailInfo(ctx context.Context, consumer string) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := f.js.Consumer(ctx, f.space.TurnsStream(), consumer)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is asked again
	}
	return c.CachedInfo(), nil
}

func (f *Feeds) tailState() tailState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *Feeds) setTailState(s tailState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = s
}
