package oneturn

import (
	"context"
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

// gate bounds the requests of one verb. A tenant that asks for much waits for itself: the
// reads of all have room for several tenants at once, and whoever waits for them does so
// with no more than its share.
type gate struct {
	reads chan struct{}

	mu      sync.Mutex
	inside  int // requests let in
	tenants map[string]*lane
}

// lane is the part of a gate that one tenant has.
type lane struct {
	reads  chan struct{}
	inside int // guarded by the gate
}

func newGate() *gate {
	return &gate{reads: make(chan struct{}, allReads), tenants: map[string]*lane{}}
}

// pass is a request that was let in.
type pass struct {
	gate   *gate
	lane   *lane
	tenant string
	held   []chan struct{}
}

// enter lets a request in, or reports that there are too many.
func (g *gate) enter(tenant string) (*pass, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.tenants[tenant]
	if l == nil {
		l = &lane{reads: make(chan struct{}, tenantReads)}
	}
	if g.inside >= allRequests || l.inside >= tenantRequests {
		return nil, false
	}
	g.tenants[tenant] = l
	g.inside++
	l.inside++
	return &pass{gate: g, lane: l, tenant: tenant}, true
}

// wait returns when the request may be read, or false when ctx ends first.
func (p *pass) wait(ctx context.Context) bool {
	for _, reads := range []chan struct{}{p.lane.reads, p.gate.reads} {
		select {
		case reads <- struct{}{}:
			p.held = append(p.held, reads)
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// leave makes room for another request. A tenant without requests is forgotten.
func (p *pass) leave() {
	for _, reads := range p.held {
		<-reads
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.inside--
	if p.lane.inside--; p.lane.inside == 0 {
		delete(p.gate.tenants, p.tenant)
	}
}
