package timers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// ScheduleExpiry returns the function that has the server send an expire event at its ExpiresAt:
// the end of the time to answer a question. Scheduled again, also when it is over, it comes once
// more at most, which is harmless.
func ScheduleExpiry(js jetstream.JetStream, space subjects.Space) func(ctx context.Context, e *events.Expire) error {
	return func(ctx context.Context, e *events.Expire) error {
		key, ok := subjects.ParseCall(e.Key)
		if !ok {
			return fmt.Errorf("schedule the expiry of %.200q: %.300q is not a key of the journal", e.ToolCallID, e.Key)
		}
		if e.ExpiresAt.IsZero() {
			return fmt.Errorf("schedule the expiry of %.200q: %w", e.ToolCallID, errNoEnd)
		}
		body, err := events.EncodeExpire(e, time.Now())
		if err != nil {
			return fmt.Errorf("schedule the expiry of %.200q: %w", e.ToolCallID, err)
		}
		ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
		defer cancel()
		if _, err := js.PublishMsg(ctx, jsapi.Scheduled(space.AskTimer(key, e.Ask), space.AskDue(key, e.Ask), e.ExpiresAt, body)); err != nil {
			return fmt.Errorf("schedule the expiry of %.200q: %w", e.ToolCallID, err)
		}
		return nil
	}
}

// errNoEnd is the error of a question without an expiry, which stays open as long as its turn.
var errNoEnd = errors.New("expires_at is not set")
