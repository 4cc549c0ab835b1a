package feed

import (
	"context"
	"sync"
)

// places bound the pages that are read at the same time. One tenant gets half of them at most, and one user half of what its
// tenant gets, so that others find some.
type places struct {
	all chan struct{} // holds one for each page that is being read

	mu     sync.Mutex
	shares map[reading]*share
}

// reading is for whom a page is read: a tenant, or one of its users.
type reading struct{ tenant, user string }

// share is what a tenant or a user has of the places.
type share struct {
	taken chan struct{}
	users int // that hold or wait for a place
}

func newPlaces(count int) *places {
	return &places{all: make(chan struct{}, count), shares: map[reading]*share{}}
}

// take waits for a place for a user of a tenant, until ctx ends or begun is closed: then the error is errBegun. The place is free again after the returned function was called.
// Reads without a user count for their tenant alone.
func (p *places) take(ctx context.Context, begun <-chan struct{}, tenant, user string) (free func(), err error) {
	most := max(1, cap(p.all)/2)
	shares := []reading{{tenant: tenant}}
	waits := []chan struct{}{p.enter(shares[0], most), p.all}
	if user != "" {
		ofUser := reading{tenant, user}
		shares = append(shares, ofUser)
		waits = append([]chan struct{}{p.enter(ofUser, max(1, most/2))}, waits...)
	}
	for n, place := range waits {
		select {
		case place <- struct{}{}:
		case <-begun:
			p.leave(waits[:n], shares)
			return nil, errBegun
		case <-ctx.Done():
			p.leave(waits[:n], shares)
			return nil, context.Cause(ctx)
		}
	}
	return func() { p.leave(waits, shares) }, nil
}

// enter returns the places of a share, which is kept until leave.
func (p *places) enter(of reading, most int) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[of]
	if s == nil {
		s = &share{taken: make(chan struct{}, most)}
		p.shares[of] = s
	}
	s.users++
	return s.taken
}

// leave frees places that were taken, and the shares that nothing uses.
func (p *places) leave(taken []chan struct{}, shares []reading) {
	for _, place := range taken {
		<-place
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range shares {
		s := p.shares[of]
		if s.users--; s.users == 0 {
			delete(p.shares, of)
		}
	}
}
