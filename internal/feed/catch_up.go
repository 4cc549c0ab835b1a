package feed

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/internal/pause"
)

// catchUpTime bounds the wait of [Feeds.CatchUp]. A feed that takes longer is late for all followers, and [Feeds.Ready] reports it.
const catchUpTime = 2 * time.Second

// tailState is how far the consumer at the end of the journal has come.
type tailState struct {
	consumer string // empty if there is none
	routed   uint64 // number of its deliveries that were routed
}

// CatchUp waits until everything that was stored before the call is routed, for two seconds at most. A follower that begins then has,
// before its boundary, everything that its client may have received from another process.
func (f *Feeds) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var stored tailState // the delivery of the last record that was stored before, and its consumer
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
