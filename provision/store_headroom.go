package provision

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/subjects"
)

// Parts of a store that is limited. Workers claim no new turns from 85 % on, so that open ones can end. What continues
// to grow then has to leave room for that: the inbound stream, its deferred messages, which may be as much
// again, and the dead letters.
const (
	inPart   = 20 // one part in so many is for the inbound stream at most
	deadPart = 40
	// ReservePercent of a store is what no new turns use.
	ReservePercent = 15
)

// Within returns options whose inbound stream and dead letters leave room for the ends of turns in a store of so
// many bytes. Sizes that are set stay.
func (o Options) Within(limit int64) Options {
	if o.InMaxBytes == 0 {
		o.InMaxBytes = part(limit, inPart, DefaultInMaxBytes)
	}
	if o.DeadMaxBytes == 0 {
		o.DeadMaxBytes = part(limit, deadPart, DefaultDeadMaxBytes)
	}
	return o
}

// part is one part in n of a limit, at most the default, as a power of two: then it seldom changes with the limit.
func part(limit, n, most int64) int64 {
	const least = 1 << 20
	size := uint64(max(limit/n, least))
	return min(1<<(bits.Len64(size)-1), most)
}

// Growth returns how many bytes the streams of inbound messages, of deferred messages and of dead letters
// may have together, [math.MaxInt64] if one has no bound.
func Growth(ctx context.Context, js jetstream.JetStream, space subjects.Space) (bytes int64, err error) {
	for name, times := range map[string]int64{space.InStream(): 2, space.DeadStream(): 1} {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("size of stream %s: %w", name, explain(err))
		}
		most := stream.CachedInfo().Config.MaxBytes
		if most <= 0 {
			return math.MaxInt64, nil
		}
		bytes += times * most
	}
	return bytes, nil
}
