package jsapi

import (
	"time"

	"github.com/nats-io/nats.go"
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
