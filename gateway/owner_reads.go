package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/oneturn/oneturn/internal/searchbudget"
)

// ownerReads are the reads of the owners of chats. Of a chat one runs at a time: those that ask meanwhile share the next one. They do not
// take the result of a read that began before they asked, since the chat may have got its owner in between. The zero value is usable.
type ownerReads struct {
	mu    sync.Mutex
	chats map[chatKey]*ownersOfChat
}

// ownersOfChat are the reads of a chat: one that runs, and the next one. Each is nil without one.
type ownersOfChat struct{ runs, next *ownerRead }

// ownerRead is a read that some requests share.
type ownerRead struct {
	done chan struct{} // closed at its end
	left bool          // the request that was to read has left before, or its user may not search now
	user string
	err  error
}

// of returns the owner of a chat as it is after the call, read by a function that one of the requests calls. One that leaves ends the
// read for itself alone.
func (o *ownerReads) of(ctx context.Context, key chatKey, read func(ctx context.Context) (string, error)) (string, error) {
	for {
		shared, first, before := o.join(key)
		if first {
			return o.run(ctx, key, shared, before, read)
		}
		select {
		case <-shared.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if !shared.left {
			return shared.user, shared.err
		}
	}
}

// join returns the next read of a chat, whether the caller is the first one that waits for it, and the read before that.
func (o *ownerReads) join(key chatKey) (next *ownerRead, first bool, before *ownerRead) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.chats[key]
	if c == nil {
		c = &ownersOfChat{}
		if o.chats == nil {
			o.chats = map[chatKey]*ownersOfChat{}
		}
		o.chats[key] = c
	}
	if c.next == nil {
		c.next, first = &ownerRead{done: make(chan struct{})}, true
	}
	return c.next, first, c.runs
}

// run reads, after the read before, for all that have joined until then.
func (o *ownerReads) run(ctx context.Context, key chatKey, r, before *ownerRead, read func(ctx context.Context) (string, error)) (string, error) {
	defer o.end(key, r)
	r.left = true // also if the read panics
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	o.begin(key, r)
	user, err := read(ctx)
	busy, refused := errors.AsType[*searchbudget.BusyError](err)
	r.user, r.err, r.left = user, err, ctx.Err() != nil || refused && busy.User
	return user, err
}

// begin begins a read: what is asked from now on is for the next one.
func (o *ownerReads) begin(key chatKey, r *ownerRead) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.chats[key].runs, o.chats[key].next = r, nil
}

// end ends a read.
func (o *ownerReads) end(key chatKey, r *ownerRead) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.chats[key]
	if c.runs == r {
		c.runs = nil
	}
	if c.next == r { // it did not begin
		c.next = nil
	}
	if c.runs == nil && c.next == nil {
		delete(o.chats, key)
	}
	close(r.done)
}
