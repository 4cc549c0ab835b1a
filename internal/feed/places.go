package feed

import (
	"context"
	"sync"
)

// places bound the pages that are read at the same time. One tenant gets half of them at most, so that others find some.
type places struct {
	all chan struct{} // holds one for each page that is being read

	mu      sync.Mutex
	tenants map[string]*share
}

// share is what one tenant has of the places.
type share struct {
	taken chan struct{}
	users int // that hold or wait for a place
}

func newPlaces(count int) *places {
	return &places{all: make(chan struct{}, count), tenants: map[string]*share{}}
}

// take waits for a place for a tenant, or until ctx ends. The place is free again after the returned function was called.
func (p *places) take(ctx context.Context, tenant string) (free func(), err error) {
	s := p.enter(tenant)
	select {
	case s.taken <- struct{}{}:
	case <-ctx.Done():
		p.leave(tenant, s)
		return nil, context.Cause(ctx)
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-s.taken
		p.leave(tenant, s)
		return nil, context.Cause(ctx)
	}
	return func() {
		<-p.all
		<-s.taken
		p.leave(tenant, s)
	}, nil
}

func (p *places) enter(tenant string) *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.tenants[tenant]
	if s == nil {
		s = &share{taken: make(chan struct{}, max(1, cap(p.all)/2))}
		p.tenants[tenant] = s
	}
	s.users++
	return s
}

func (p *places) leave(tenant string, s *share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(p.tenants, tenant)
	}
}
