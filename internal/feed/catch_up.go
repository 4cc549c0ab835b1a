package feed

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
)

// catchUpTime bounds the wait of [Feeds.CatchUp]: what could be late then is late for everyone, and said by [Feeds.Ready].
const catchUpTime = 2 * time.Second

// tailState is how far the consumer at the end of the journal has come.
type tailState struct {
	consumer string // empty if there is none
	routed   uint64 // of its deliveries
}

// CatchUp waits until everything was routed that was stored before the call, two seconds at most. A follower that begins then has at
// its boundary what a client has seen at another process, which may be faster.
func (f *Feeds) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var stored tailState // what was stored before, as the number of a delivery
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		now := f.tailState()
		if now.consumer != "" && now.consumer != stored.consumer {
			if c, err := f.js.Consumer(ctx, f.space.TurnsStream(), now.consumer); err == nil {
				info := c.CachedInfo()
				stored = tailState{now.consumer, info.Delivered.Consumer + info.NumPending}
				now = f.tailState()
			}
		}
		if now.consumer != "" && now.consumer == stored.consumer && now.routed >= stored.routed {
			return
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
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
