package feed

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// chat names a chat by its tokens.
type chat struct{ app, id string }

// Follow returns a follower of a chat, for the events after a sequence: 0 for all of them. App and chat are ids.
func (f *Feeds) Follow(app, id string, after uint64) *Follower {
	w := &Follower{
		feeds: f, chat: chat{subjects.Token(app), subjects.Token(id)}, id: id,
		through: after, last: after, replaying: true,
		wake: make(chan struct{}, 1),
	}
	w.life, w.end = context.WithCancelCause(f.life)
	f.mu.Lock()
	defer f.mu.Unlock()
	w.target = f.position
	if f.chats[w.chat] == nil {
		f.chats[w.chat] = map[*Follower]struct{}{}
	}
	f.chats[w.chat][w] = struct{}{}
	return w
}

// forget removes a follower.
func (f *Feeds) forget(w *Follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.chats[w.chat], w)
	if len(f.chats[w.chat]) == 0 {
		delete(f.chats, w.chat)
	}
	w.queue, w.size = nil, 0
}

// route passes a record to the followers of its chat, and counts it as so many deliveries of the consumer, 0 for one that was read. Records
// come in the order of their sequences. One is decoded only if its chat is followed, and while the hub is not locked.
func (f *Feeds) route(name subjects.Record, seq, deliveries uint64, read func() *idempotency.Record) {
	var e *Event
	for decoded := false; ; decoded = true {
		f.mu.Lock()
		if seq <= f.position { // a new consumer began earlier
			f.state.routed = max(f.state.routed, deliveries)
			f.mu.Unlock()
			return
		}
		followers := f.chats[chat{name.App, name.Chat}]
		if decoded || len(followers) == 0 {
			f.position = seq
			f.state.routed = max(f.state.routed, deliveries)
			for w := range followers {
				if e != nil {
					w.push(e, f.o.QueueBytes)
				}
			}
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		e = f.eventOf(read())
	}
}

// isFollowed reports whether a chat has followers.
func (f *Feeds) isFollowed(of chat) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.chats[of]) > 0
}

// routeLive passes an event that is not stored to the followers of its chat.
func (f *Feeds) routeLive(m *nats.Msg) {
	app, id, ok := f.space.LiveChat(m.Subject)
	if !ok || !f.isFollowed(chat{app, id}) {
		return
	}
	e := &Event{Time: time.Now().UTC(), Kind: kindOf(m.Data), JSON: m.Data}
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.chats[chat{app, id}] {
		w.push(e, f.o.QueueBytes)
	}
}

// push adds an event to the queue of a follower, or drops the queue if there is no room. The hub is locked.
func (w *Follower) push(e *Event, most int) {
	switch {
	case w.lagging:
		return // a stored event is read from the journal later
	case len(w.queue) > 0 && w.size+e.size() > most && e.Sequence == 0:
		return
	case len(w.queue) > 0 && w.size+e.size() > most:
		w.queue, w.size, w.lagging = nil, 0, true
	default:
		w.queue, w.size = append(w.queue, e), w.size+e.size()
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// takenTogether is how many events a follower takes from its queue: what it has taken is not counted there.
const takenTogether = 64

// take moves the next events of the queue to the follower, none if there are none. After a queue was dropped it moves the target of
// the follower to what was routed by now, and queues what comes later.
func (f *Feeds) take(w *Follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.taken, w.at = w.taken[:0], 0
	switch {
	case w.lagging:
		w.lagging, w.target = false, f.position
	case len(w.queue) <= takenTogether:
		w.taken, w.queue, w.size = w.queue, w.taken, 0
	default:
		w.taken = append(w.taken, w.queue[:takenTogether]...)
		for i, e := range w.taken {
			w.size -= e.size()
			w.queue[i] = nil
		}
		w.queue = w.queue[takenTogether:]
	}
}
