package jsapi

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ServerTime is the time by the clock of the server that leads a stream. Ages of records are measured with it, never
// with a local clock.
func ServerTime(ctx context.Context, js jetstream.JetStream, stream string) (time.Time, error) {
	handle, err := js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("stream %s: %w", stream, err)
	}
	return handle.CachedInfo().TimeStamp, nil
}
