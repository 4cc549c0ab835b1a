package jsapi

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of a message schedule (NATS 2.12 and later): the server delivers the message to the target when its time
// has come, and removes the schedule.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// Scheduled returns a message that the server delivers to a target at a time of the server's clock. A subject holds
// one schedule: the last one.
func Scheduled(subject, target string, at time.Time, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	m.Header.Set(headerSchedule, "@at "+at.UTC().Format(time.RFC3339Nano))
	m.Header.Set(headerScheduleTarget, target)
	return m
}

// ServerTime is the time by the clock of the server that leads a stream. Ages of records are measured with it, never
// with a local clock.
func ServerTime(ctx context.Context, js jetstream.JetStream, stream string) (time.Time, error) {
	handle, err := js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("stream %s: %w", stream, err)
	}
	return handle.CachedInfo().TimeStamp, nil
}
