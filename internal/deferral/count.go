package deferral

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// scheduleHashSize is how many characters of a hash are in the id of a schedule.
const scheduleHashSize = 22

// countDeferred counts the deferred messages by the names of their schedules. Timeouts of open questions, which are in
// the same stream, do not count, nor do deferred expiries.
func countDeferred(ctx context.Context, js jetstream.JetStream, space subjects.Space) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	in, err := js.Stream(ctx, space.InStream())
	if err != nil {
		return usage{}, fmt.Errorf("read the bound of the inbound stream: %w", err)
	}
	use := usage{most: in.CachedInfo().Config.MaxBytes}
	err = use.count(space, func(offset int) (*jsapi.InfoPage, error) {
		return jsapi.Info(ctx, js.Conn(), space.TimersStream(), space.DeferralTimers(), offset)
	})
	if err != nil {
		return usage{}, fmt.Errorf("count the deferred messages: %w", err)
	}
	return use, nil
}

// count adds the schedules that are listed, page by page.
func (u *usage) count(space subjects.Space, list func(offset int) (*jsapi.InfoPage, error)) error {
	for offset := 0; ; {
		page, err := list(offset)
		if err != nil {
			return err
		}
		for subject, n := range page.State.Subjects {
			if in, id, ok := space.ParseDeferralTimer(subject); ok && in.Kind != events.KindExpire {
				u.add(in.App, int(n), int64(n)*(scheduledBytes(id)+overhead))
			}
		}
		offset += len(page.State.Subjects)
		if len(page.State.Subjects) == 0 || offset >= page.Total {
			return nil
		}
	}
}

// scheduleID is the last token of a schedule: a hash that identifies the message, and the bytes that it counts for.
func scheduleID(id string, bytes int) string { return id + "-" + strconv.Itoa(bytes) }

// scheduledBytes reads the bytes from the id of a schedule; 0 if it does not name them.
func scheduledBytes(id string) int64 {
	if len(id) <= scheduleHashSize {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(id[scheduleHashSize:], "-"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
