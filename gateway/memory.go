package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/gateway/auth"
)

// memory bounds the bytes of chats that are being read and of snapshots that clients have not read yet, and of bodies. A tenant gets half of
// them, and a user an eighth, so that clients that are slow or send much delay no others.
type memory struct {
	most, perTenant, perUser int

	mu    sync.Mutex
	used  int
	of    map[auth.Target]int // by tenant, and by tenant and user
	freed chan struct{}       // closed when some of it is free again
}

// snapshotMemory is what all runs together may use.
const snapshotMemory = 256 << 20

func newMemory(most int) *memory { return newShares(most, most/2, most/8) }

// newShares returns a memory with other shares: of anything that is counted.
func newShares(most, perTenant, perUser int) *memory {
	return &memory{most: most, perTenant: perTenant, perUser: perUser, of: map[auth.Target]int{}, freed: make(chan struct{})}
}

// room is a part of a memory.
type room struct {
	m     *memory
	bytes int
	of    [2]auth.Target
}

// try takes room for a user, and returns nil if there is none. What is larger than the share of a user counts as the whole share.
func (m *memory) try(t auth.Target, bytes int) *room {
	r := &room{m: m, bytes: min(bytes, m.perUser), of: [2]auth.Target{{App: t.App}, {App: t.App, User: t.User}}}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used+r.bytes > m.most || m.of[r.of[0]]+r.bytes > m.perTenant || m.of[r.of[1]]+r.bytes > m.perUser {
		return nil
	}
	m.add(r, r.bytes)
	return r
}

// take waits for room, as long as some becomes free for others.
func (m *memory) take(ctx context.Context, t auth.Target, bytes int) (*room, error) {
	for {
		freed := m.next()
		if r := m.try(t, bytes); r != nil {
			return r, nil
		}
		if err := waitFor(ctx, freed, nil); err != nil {
			return nil, err
		}
	}
}

// next returns what is closed when some room is freed.
func (m *memory) next() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.freed
}

// waitFor waits until one of two channels is closed, but not for ever.
func waitFor(ctx context.Context, a, b <-chan struct{}) error {
	wait := time.NewTimer(readPatience)
	defer wait.Stop()
	select {
	case <-a:
	case <-b:
	case <-wait.C:
		return errStalled
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// free releases the room.
func (r *room) free() { r.shrink(0) }

// shrink releases all of the room but so many bytes.
func (r *room) shrink(bytes int) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	bytes = min(bytes, r.bytes)
	r.m.add(r, bytes-r.bytes)
	r.bytes = bytes
	close(r.m.freed)
	r.m.freed = make(chan struct{})
}

func (m *memory) add(r *room, bytes int) {
	m.used += bytes
	for _, of := range r.of {
		if m.of[of] += bytes; m.of[of] == 0 {
			delete(m.of, of)
		}
	}
}
