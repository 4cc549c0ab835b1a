package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Sync is what is known about how a server writes to its disk. Clients cannot see it.
type Sync int

// What may be known.
const (
	SyncUnknown Sync = iota // an external server
	SyncLazy                // the embedded server as it is
	SyncAlways              // the embedded server with --sync-always
)

// Tier names what the stored records survive. Print it with every promise and number.
type Tier struct {
	Name string `json:"name"` // memory, embedded, single, single-sync, cluster, cluster-sync
	Text string `json:"text"` // one sentence for people
}

// ReadTier reads the durability tier from the journal and the inbound stream of plan; the
// weaker one counts. Call it after [Apply] or [Check].
func ReadTier(ctx context.Context, js jetstream.JetStream, plan Plan, sync Sync) (Tier, error) {
	memory, replicas := false, 0
	for _, name := range []string{plan.journal, plan.inbound} {
		stream, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return Tier{}, fmt.Errorf("stream %s is missing: %w (%w): run `turnctl provision`", name, ErrNotReady, err)
		}
		if err != nil {
			return Tier{}, fmt.Errorf("provision: read the durability tier of stream %s: %w", name, explain(err))
		}
		cfg := stream.CachedInfo().Config
		memory = memory || cfg.Storage == jetstream.MemoryStorage
		if replicas == 0 || cfg.Replicas < replicas {
			replicas = cfg.Replicas
		}
	}
	return TierOf(memory, replicas, sync), nil
}

// TierOf is the table of tiers. If the sync mode is unknown, it names the weaker tier and states that:
// nothing is promised that cannot be seen.
func TierOf(memory bool, replicas int, sync Sync) Tier {
	const unseen = " How the servers sync cannot be seen from here: with sync_interval: always "
	switch {
	case memory:
		return Tier{"memory", "Records live in memory: nothing survives the server. For tests and trials only."}
	case replicas > 1 && sync == SyncAlways:
		return Tier{"cluster-sync", fmt.Sprintf("Records are on %d servers and synced: they survive a lost server and a power loss of all.", replicas)}
	case replicas > 1:
		return Tier{"cluster", fmt.Sprintf("Records are on %d servers: they survive a lost server, not surely a power loss of all.", replicas) +
			unseen + "they survive that too."}
	case sync == SyncAlways:
		return Tier{"single-sync", "Records are on one synced disk: they survive crashes and a power loss, not the loss of the disk."}
	case sync == SyncLazy:
		return Tier{"embedded", "Records are on one disk, synced every two minutes: they survive crashes of worker and server; " +
			"a power loss may take the last two minutes, and a turn of that time may then run again."}
	default:
		return Tier{"single", "Records are on one server: they survive its crash; a power loss may take the last two minutes." +
			unseen + "nothing is lost."}
	}
}
