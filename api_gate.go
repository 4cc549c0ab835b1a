package oneturn

import (
	"context"
	"slices"
	"sync"
)

// Bounds of the requests of one verb that a worker has in hand: how many of a tenant, and of
// all, are read at a time, and how many more may wait for that.
const (
	tenantReads    = 4
	allReads       = 16
	tenantRequests = 256
	allRequests    = 1024
)

// gate bounds the requests of one verb. A tenant that asks for much waits for itself: it reads no more
// at a time than are left to others, and whoever waits does so with no more than its share.
type gate struct {
	mu      sync.Mutex
	inside  int                // requests let in
	reads   map[*pass]struct{} // those that are read
	tenants map[string]*lane
	queue   []*pass // those that wait for a read, oldest first
}

// lane is the part of a gate that one tenant has.
type lane struct{ inside, reading int }

func newGate() *gate { return &gate{reads: map[*pass]struct{}{}, tenants: map[string]*lane{}} }

// pass is a request that was let in. All but its channel is guarded by the gate.
type pass struct {
	gate   *gate
	lane   *lane
	tenant string
	ready  chan struct{} // closed when it may be read
	reads  bool          // it counts for its tenant
}

// enter lets a request in, or reports that there are too many.
func (g *gate) enter(tenant string) (*pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.tenants[tenant]
	if l == nil {
		l = &lane{}
	}
	if g.inside >= allRequests || l.inside >= tenantRequests {
		return nil, false
	}
	g.tenants[tenant] = l
	g.inside++
	l.inside++
	return &pass{gate: g, lane: l, tenant: tenant, ready: make(chan struct{})}, true
}

// wait returns when the request may be read, or false when ctx ends first.
func (p *pass) wait(ctx context.Context) bool {
	p.gate.mu.Lock()
	p.gate.queue = append(p.gate.queue, p)
	p.gate.admit()
	p.gate.mu.Unlock()
	select {
	case <-p.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// admit lets requests read for which there is room.
func (g *gate) admit() {
	g.queue = slices.DeleteFunc(g.queue, func(p *pass) bool {
		if p.lane.reading >= min(tenantReads, allReads-len(g.reads)) {
			return false
		}
		p.reads = true
		p.lane.reading++
		g.reads[p] = struct{}{}
		close(p.ready)
		return true
	})
}

// rest lets others read while the request waits for something else. It still counts for its tenant.
func (p *pass) rest() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	delete(p.gate.reads, p)
	p.gate.admit()
}

// leave makes room for another request. A tenant without requests is forgotten.
func (p *pass) leave() {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.reads {
		p.lane.reading--
		delete(g.reads, p)
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *pass) bool { return other == p })
	g.inside--
	if p.lane.inside--; p.lane.inside == 0 {
		delete(g.tenants, p.tenant)
	}
	g.admit()
}
