package feed

import (
	"context"
	"errors"
	"sync"

	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
)

// pages are the reads of pages that followers need now. Followers that need the same page share one read. Each waits for a place of its
// user, and the first one that gets it reads for all, so none waits because another user has no place. The zero value is usable.
type pages struct {
	mu    sync.Mutex
	reads map[string]*pageRead
}

// pageRead is the read of a page.
type pageRead struct {
	waiting int           // followers; guarded by pages
	user    string        // for whom it is read, once it has begun
	begun   chan struct{} // closed when one of them has a place
	done    chan struct{} // closed at the end
	page    *query.HistoryPage
	err     error
}

// errBegun ends the wait for a place: another follower reads.
var errBegun = errors.New("the page is being read")

// get returns a page, by its key. Take waits for a place for the user, or returns errBegun when begun is closed; read reads the page, also
// after the follower has left.
func (p *pages) get(
	ctx context.Context, key, user string, take func(ctx context.Context, begun <-chan struct{}) (free func(), err error), read func() (*query.HistoryPage, error),
) (*query.HistoryPage, error) {
	for {
		r, err := p.share(ctx, key, user, take, read)
		if err != nil {
			return nil, err
		}
		busy, refused := errors.AsType[*searchbudget.BusyError](r.err)
		if refused && busy.User && r.user != user { // another user may not search now
			continue
		}
		return r.page, r.err
	}
}

// share returns a read that has ended.
func (p *pages) share(
	ctx context.Context, key, user string, take func(ctx context.Context, begun <-chan struct{}) (free func(), err error), read func() (*query.HistoryPage, error),
) (*pageRead, error) {
	r := p.join(key)
	defer p.leave(key, r)
	free, err := take(ctx, r.begun)
	switch {
	case errors.Is(err, errBegun):
	case err != nil:
		return nil, err
	case p.begin(r, user):
		go func() { // ends with the feed at the latest
			defer free()
			r.page, r.err = read()
			p.end(key, r)
		}()
	default:
		free()
	}
	select {
	case <-r.done:
		return r, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join returns the read of a page, which is kept until leave or its end.
func (p *pages) join(key string) *pageRead {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.reads[key]
	if r == nil {
		if p.reads == nil {
			p.reads = map[string]*pageRead{}
		}
		r = &pageRead{begun: make(chan struct{}), done: make(chan struct{})}
		p.reads[key] = r
	}
	r.waiting++
	return r
}

// begin reports whether the caller is the one that reads.
func (p *pages) begin(r *pageRead, user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-r.begun:
		return false
	default:
	}
	r.user = user
	close(r.begun)
	return true
}

// end ends a read: a follower that needs the page later reads it again.
func (p *pages) end(key string, r *pageRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reads[key] == r {
		delete(p.reads, key)
	}
	close(r.done)
}

// leave forgets a read that has not begun and that no follower waits for.
func (p *pages) leave(key string, r *pageRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.waiting--
	select {
	case <-r.begun:
		return
	default:
	}
	if r.waiting == 0 && p.reads[key] == r {
		delete(p.reads, key)
	}
}
