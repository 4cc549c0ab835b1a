package provision

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// StoreUse returns how many bytes an account stores on file, and may store, -1 for no limit. Of an
// account with limits for each number of replicas it is the tier of a stream, the journal, that
// counts.
func StoreUse(ctx context.Context, js jetstream.JetStream, stream string) (used, limit int64, err error) {
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("account info: %w", err)
	}
	if len(info.Tiers) == 0 {
		used, limit = useOf(&info.Tier)
		return used, limit, nil
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return 0, 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	used, limit = tierUse(info, max(s.CachedInfo().Config.Replicas, 1))
	return used, limit, nil
}

// tierUse is the use of the tier for a number of replicas. A tier that is not listed has no limit.
func tierUse(info *jetstream.AccountInfo, replicas int) (used, limit int64) {
	tier, ok := info.Tiers["R"+strconv.Itoa(replicas)]
	if !ok {
		return 0, -1
	}
	return useOf(&tier)
}

func useOf(t *jetstream.Tier) (used, limit int64) {
	if t.Limits.MaxStore <= 0 {
		return int64(min(t.Store, 1<<62)), -1
	}
	return int64(min(t.Store, 1<<62)), t.Limits.MaxStore
}
