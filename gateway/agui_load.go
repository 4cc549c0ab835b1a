package gateway

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/feed"
)

// How a run begins: with what its chat displays, which it reads together with the other runs of the chat.

// load reads the chat, decides whether the run may begin, and prepares what it sends first.
func (r *run) load(ctx context.Context) error {
	owner, err := r.g.mayUseChat(ctx, r.c.id, r.c.target)
	if err != nil {
		return err
	}
	r.watched = r.g.watch(r.c.id, r.c.target, owner)
	for {
		size := 0
		r.follower, err = r.g.readChat(ctx, r.c.target, func(c *loadedChat) error {
			if size = c.chat.Size(); r.room == nil {
				r.room = r.g.memory.try(r.c.target, size)
			}
			if r.room == nil {
				return errNoRoom
			}
			return r.take(c)
		})
		if err == nil {
			return r.confirm(ctx)
		}
		if !errors.Is(err, errNoRoom) {
			return err
		}
		if r.room, err = r.g.memory.take(ctx, r.c.target, size); err != nil {
			return err
		}
	}
}

// errNoRoom means that a snapshot has to wait until clients have read others.
var errNoRoom = errors.New("no room for a snapshot")

// take copies what the run needs from the chat, which other runs use after it.
func (r *run) take(c *loadedChat) error {
	r.chat, r.last = c.chat, c.last
	if err := r.makePlan(); err != nil {
		return err
	}
	if !r.chat.Empty() {
		r.first = append(r.view.Snapshot(r.chat, r.plan.messages), r.view.Activities(r.chat)...)
	}
	r.chat = r.chat.Continued()
	r.open.follows.Store(!r.connect && !r.unsure && r.doubted == nil)
	return nil
}

// refusal returns the refusal of a run that cannot begin.
func (r *run) refusal(ctx context.Context, err error) error {
	var refused *refusedError
	var denied *auth.Error
	switch {
	case errors.As(err, &refused), errors.As(err, &denied):
		return err
	case errors.Is(context.Cause(ctx), errDraining), errors.Is(err, feed.ErrClosed):
		return draining()
	}
	return unavailable(err)
}
