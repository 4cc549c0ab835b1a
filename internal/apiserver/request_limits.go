package apiserver

// A gate admits the requests of one verb: 256 of a tenant and 1,024 of all are in progress, 4 of a tenant and
// 16 of all read the journal at the same time, and the rest wait in the order of their arrival. A tenant that
// requests much waits for itself.

import (
	"context"
	"slices"
	"sync"
)

// Bounds of the requests of one verb: how many of a tenant, and of all, read at the same time, and how many
// may be in progress, those that wait to read included.
const (
	tenantReads    = 4
	allReads       = 16
	tenantRequests = 256
	allRequests    = 1024
)

// gate bounds the requests of one verb. A tenant reads no more at the same time than it leaves to others, and
// requests that wait take no more than the share of their tenant.
type gate struct {
	mu      sync.Mutex
	inside  int                // requests let in
	reads   map[*pass]struct{} // those that are read
	tenants map[string]*tenantLoad
	queue   []*pass // those that wait for a read, oldest first
}

// tenantLoad counts the requests of one tenant.
type tenantLoad struct{ inside, reading int }

func newGate() *gate { return &gate{reads: map[*pass]struct{}{}, tenants: map[string]*tenantLoad{}} }

// pass is an admitted request. The gate's mutex guards all but its channel.
type pass struct {
	gate   *gate
	load   *tenantLoad
	tenant string
	ready  chan struct{} // closed when it may be read
	reads  bool          // it counts for its tenant
}

// enter admits a request, or reports that there are too many.
func (g *gate) enter(tenant string) (*pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.tenants[tenant]
	if l == nil {
		l = &tenantLoad{}
	}
	if g.inside >= allRequests || l.inside >= tenantRequests {
		return nil, false
	}
	g.tenants[tenant] = l
	g.inside++
	l.inside++
	return &pass{gate: g, load: l, tenant: tenant, ready: make(chan struct{})}, true
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
		if p.load.reading >= min(tenantReads, allReads-len(g.reads)) {
			return false
		}
		p.reads = true
		p.load.reading++
		g.reads[p] = struct{}{}
		close(p.ready)
		return true
	})
}

// release lets others read while the request waits for something else. It still counts for its tenant.
func (p *pass) release() {
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
		p.load.reading--
		delete(g.reads, p)
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *pass) bool { return other == p })
	g.inside--
	if p.load.inside--; p.load.inside == 0 {
		delete(g.tenants, p.tenant)
	}
	g.admit()
}
