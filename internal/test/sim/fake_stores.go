package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// documents is the simulated bucket of context variables.
type documents struct {
	w        *world
	data     map[string][]byte
	revision map[string]uint64
	writes   uint64
}

// Read implements [store.Documents].
func (d *documents) Read(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := d.w.store.read(ctx, "read document"); err != nil {
		return nil, 0, err
	}
	return d.data[key], d.revision[key], nil
}

// Write implements [store.Documents].
func (d *documents) Write(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	w := d.w
	w.yield("write document")
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if w.strike(FailedMerge, 3) && w.chance(1, 2) {
		return 0, errNoAnswer
	}
	if d.revision[key] != revision {
		return 0, jetstream.ErrKeyExists
	}
	if key == subjects.ContextKey(app, chat) {
		w.checkRevision(d.data[key], data)
	}
	d.writes++
	written := d.writes
	d.data[key], d.revision[key] = slices.Clone(data), written
	if strings.HasPrefix(key, sweepKeys) {
		w.checkSwept()
	}
	if w.strike(FailedMerge, 6) {
		return 0, errNoAnswer
	}
	w.yield("document written")
	return written, nil
}

// Name implements [store.Documents].
func (*documents) Name() string { return "CONTEXT" }

// Limit implements [store.Documents].
func (*documents) Limit() int { return 1 << 20 }

// blobs is the simulated store of large payloads. Nothing here is large.
type blobs struct{}

// Inline implements [store.BlobStore].
func (blobs) Inline(int) bool { return true }

// Shrink implements [store.BlobStore].
func (blobs) Shrink(_ context.Context, _ subjects.Key, _ string, value any, _ []byte) (any, error) {
	return value, nil
}

// Object implements [store.BlobStore].
func (blobs) Object(_ context.Context, _ subjects.Key, _ string, stored any) (map[string]any, error) {
	args, _ := stored.(map[string]any)
	return args, nil
}

// Value implements [store.BlobStore].
func (blobs) Value(_ context.Context, _ subjects.Key, _ string, stored any) (any, error) {
	return stored, nil
}

// letters is the simulated store of dead letters.
type letters struct{ w *world }

var errNoLetter = errors.New("simulated: the dead letter is not stored")

// Put implements [deadletter.Store].
func (l letters) Put(_ context.Context, m *inbound.Message, reason string, _ error) error {
	l.w.yield("dead letter")
	if l.w.strike(LostDead, 3) {
		return errNoLetter
	}
	t := l.w.active.t
	seenFull := !t.p.filled.Add(-t.p.skew).Before(t.since)
	l.w.letters[m.Lease.Seq], t.m.refusedForRoom = reason, t.noRoom && seenFull
	return nil
}
