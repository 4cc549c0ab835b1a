package gateway

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/gateway/display"
	"github.com/oneturn/oneturn/internal/feed"
)

// A run of AG-UI begins with what its whole chat displays. Runs and connects of a chat share one reading of it: the first one
// reads, the next one continues where that came to, whether it has ended or its client has left. A chat is kept for a short time
// after its last use, so what was erased from the journal is not displayed for longer.

// Bounds of chats that no run uses.
const (
	idleBytes = 64 << 20         // of all of them, half of it of one tenant
	loadedFor = 30 * time.Second // since the reading began
)

// readPatience is how long a run waits for the next event that it reads. There is no bound of the whole time: a chat may be long.
const readPatience = 15 * time.Second

// errStalled means that nothing could be read of a chat for a while.
var errStalled = errors.New("the chat cannot be read now")

type chatKey struct{ app, chat string }

// loadedChats are the chats that runs have read.
type loadedChats struct {
	mu    sync.Mutex
	chats map[chatKey]*loadedChat
	idle  *list.List // of *loadedChat, that which was left last at the end
	size  int        // of those, in bytes
	sizes map[string]int
}

// loadedChat is a chat as the journal had it up to an event.
type loadedChat struct {
	key   chatKey
	began time.Time
	turn  chan struct{} // holds one while a run reads or uses the chat
	moved atomic.Uint64 // grows with each event that is read

	// Of the run whose turn it is.
	chat  *display.Chat
	last  time.Time     // when the chat had its last stored event
	whole bool          // it was read to the end at least once
	read  chan struct{} // closed when it is whole

	// Guarded by loadedChats.
	users int           // runs that wait for the chat or use it
	place *list.Element // among the idle ones
	size  int           // there
}

func newLoadedChats() *loadedChats {
	return &loadedChats{chats: map[chatKey]*loadedChat{}, idle: list.New(), sizes: map[string]int{}}
}

// enter returns a chat, which is kept until leave.
func (l *loadedChats) enter(key chatKey, now time.Time) *loadedChat {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	c := l.chats[key]
	if c == nil || now.Sub(c.began) > loadedFor && c.whole {
		c = &loadedChat{key: key, began: now, turn: make(chan struct{}, 1), read: make(chan struct{}), chat: display.New()}
		l.chats[key] = c
	}
	if c.users++; c.place != nil {
		l.notIdle(c)
	}
	return c
}

// leave ends the use of a chat.
func (l *loadedChats) leave(c *loadedChat, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.users--; c.users > 0 || l.chats[c.key] != c {
		return
	}
	c.size = c.chat.Size()
	c.place = l.idle.PushBack(c)
	l.size += c.size
	l.sizes[c.key.app] += c.size
	l.expire(now)
	for at := l.idle.Front(); at != nil && (l.size > idleBytes || l.sizes[c.key.app] > idleBytes/2); {
		old, _ := at.Value.(*loadedChat)
		at = at.Next()
		if l.size > idleBytes || old.key.app == c.key.app {
			l.drop(old)
		}
	}
}

// expire drops the chats that are too old.
func (l *loadedChats) expire(now time.Time) {
	for at := l.idle.Front(); at != nil; {
		old, _ := at.Value.(*loadedChat)
		at = at.Next()
		if now.Sub(old.began) > loadedFor {
			l.drop(old)
		}
	}
}

func (l *loadedChats) drop(c *loadedChat) {
	l.notIdle(c)
	delete(l.chats, c.key)
}

func (l *loadedChats) notIdle(c *loadedChat) {
	l.idle.Remove(c.place)
	c.place = nil
	l.size -= c.size
	if l.sizes[c.key.app] -= c.size; l.sizes[c.key.app] == 0 {
		delete(l.sizes, c.key.app)
	}
}

// lock waits for the turn of a run, as long as those before it get on.
func (c *loadedChat) lock(ctx context.Context) error {
	for seen := c.moved.Load(); ; {
		wait := time.NewTimer(readPatience)
		select {
		case c.turn <- struct{}{}:
			wait.Stop()
			return nil
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		case <-wait.C:
		}
		now := c.moved.Load()
		if now == seen {
			return errStalled
		}
		seen = now
	}
}

// readChat reads what the journal has of a chat and was not read before, and calls use, which must not keep the chat. The follower
// continues after that.
func (g *Gateway) readChat(ctx context.Context, t auth.Target, use func(c *loadedChat) error) (*feed.Follower, error) {
	j := g.journal(ctx)
	if err := catchUp(ctx, j.feeds); err != nil {
		return nil, err
	}
	c := j.loaded.enter(chatKey{t.App, t.Chat}, time.Now())
	defer func() { j.loaded.leave(c, time.Now()) }()
	unlock, err := g.lockToRead(ctx, c, t)
	if err != nil {
		return nil, err
	}
	defer unlock()
	follower := j.feeds.Follow(t.App, t.Chat, c.chat.Sequence()) // for the tenant: others wait for this reading
	err = g.readOn(ctx, c, follower)
	follower.For(t.User)
	if err == nil {
		c.moved.Add(1)
		err = use(c)
	}
	if err != nil {
		follower.Close()
		return nil, err
	}
	return follower, nil
}

// catchUp waits until a gateway has everything that was stored before: else the client may have more of the chat, from another one,
// than the run begins with.
func catchUp(ctx context.Context, f *feed.Feeds) error {
	within, cancel := context.WithTimeoutCause(ctx, readPatience, errStalled)
	defer cancel()
	return f.CatchUp(within)
}

// lockToRead waits for the turn of a run, and for the room of a reading, if the chat was not read already. What waits for the
// share of its user keeps the chat from no other user, and takes what one of them reads.
func (g *Gateway) lockToRead(ctx context.Context, c *loadedChat, t auth.Target) (unlock func(), err error) {
	for {
		freed := g.memory.next()
		if err := c.lock(ctx); err != nil {
			return nil, err
		}
		if c.whole {
			return func() { <-c.turn }, nil
		}
		if room := g.memory.try(t, display.MaxBytes); room != nil {
			return func() {
				room.free()
				<-c.turn
			}, nil
		}
		read := c.read
		<-c.turn
		if err := waitFor(ctx, freed, read); err != nil {
			return nil, err
		}
	}
}

// readOn applies the events up to the boundary of a follower.
func (g *Gateway) readOn(ctx context.Context, c *loadedChat, follower *feed.Follower) error {
	for {
		item, err := nextWithin(ctx, follower, readPatience)
		switch {
		case errors.Is(err, errQuiet):
			return errStalled
		case err != nil:
			return err
		case item.Boundary != nil && item.Boundary.Reset:
			if c.chat = display.New(); c.whole {
				c.whole, c.read = false, make(chan struct{})
			}
			return feed.ErrJournalReplaced
		case item.Boundary != nil:
			if !c.whole {
				c.whole = true
				close(c.read)
			}
			return nil
		}
		e := item.Event
		c.moved.Add(1)
		if e.Sequence == 0 {
			continue
		}
		c.chat.Apply(e.Sequence, g.decoded(e))
		c.last = e.Time
	}
}
