package provision

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestStoreOfATieredAccountIsTheJournalsTier(t *testing.T) {
	t.Parallel()
	tier := func(store uint64, limit int64) jetstream.Tier {
		return jetstream.Tier{Store: store, Limits: jetstream.AccountLimits{MaxStore: limit}}
	}
	info := &jetstream.AccountInfo{Tier: tier(509, 0), Tiers: map[string]jetstream.Tier{"R1": tier(9, 10), "R3": tier(500, 1000), "R5": tier(7, -1)}}
	for replicas, want := range map[int][2]int64{1: {9, 10}, 3: {500, 1000}, 5: {7, -1}, 2: {0, -1}} {
		used, limit := tierUse(info, replicas)
		require.Equal(t, want, [2]int64{used, limit}, "R%d", replicas)
	}
}
