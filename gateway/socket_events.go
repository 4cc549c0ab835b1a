package gateway

import (
	"context"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/internal/feed"
)

// What a socket sends: the events of its chat after the cursor, the boundary, and then new ones. It takes some events when those
// before are written, so what a slow client has not read waits in the journal.

// boundary is the data of chat.resume_boundary.
type boundary struct {
	Kind     string   `json:"kind"`
	Chat     string   `json:"chat_id"`
	Last     uint64   `json:"last_sequence"`
	Replayed int      `json:"replayed_messages"`
	Open     []string `json:"open"`
	Reset    bool     `json:"reset,omitempty"`
}

const kindBoundary = "resume_boundary"

// send sends events until the socket ends. It begins again where the client asks for.
func (s *socket) send(ctx context.Context) error {
	owner := ""
	err := repeat(ctx, nil, func(ctx context.Context) (err error) {
		owner, err = s.g.ownerFor(ctx, s.id, s.target)
		return err
	})
	if err != nil {
		return err
	}
	watched := s.g.watch(s.id, s.target, owner)
	for {
		following, after, done := s.begin(ctx)
		err := s.follow(following, watched, after)
		done()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !s.resumed() {
			return err
		}
	}
}

// begin returns the cursor of the events to send next, and a context that ends when the client asks for others.
func (s *socket) begin(ctx context.Context) (following context.Context, after uint64, done func()) {
	following, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resume, s.cut = false, cancel
	return following, s.after, cancel
}

// restart makes the socket send the events after a cursor again.
func (s *socket) restart(after uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after, s.resume = after, true
	if s.cut != nil {
		s.cut()
	}
}

func (s *socket) resumed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resume
}

// batchBytes is the size from which frames are not collected any more.
const batchBytes = 32 << 10

// follow sends the events after a cursor until ctx ends or a write fails. Those that are there already are written together.
func (s *socket) follow(ctx context.Context, watched *watch, after uint64) error {
	follower := s.g.journal(ctx).feeds.Follow(s.target.App, s.target.Chat, after).For(s.target.User)
	defer follower.Close()
	replayed, size := 0, 0
	var batch [][]byte
	for {
		item, err := follower.Next(ctx)
		if err != nil {
			return err
		}
		if item.Boundary != nil {
			if err := s.sendBoundary(ctx, item.Boundary, replayed); err != nil {
				return err
			}
			continue
		}
		if err := watched.allow(ctx, item.Event); err != nil {
			return err
		}
		if frame := s.g.frame(item.Event); frame != nil {
			batch, size = append(batch, frame), size+len(frame)
			if item.Event.Replay {
				replayed++
			}
		}
		if size > batchBytes || !follower.Pending() {
			if err := s.write(batch...); err != nil {
				return err
			}
			clear(batch)
			batch, size = batch[:0], 0
		}
	}
}

// sendBoundary ends the replay with the questions that are open now.
func (s *socket) sendBoundary(ctx context.Context, b *feed.Boundary, replayed int) error {
	var open []api.Question
	err := repeat(ctx, nil, func(ctx context.Context) (err error) {
		open, err = s.g.openQuestions(ctx, s.target)
		return err
	})
	if err != nil {
		return err
	}
	data := boundary{Kind: kindBoundary, Chat: s.target.Chat, Last: b.Last, Replayed: replayed, Open: make([]string, len(open)), Reset: b.Reset}
	for i := range open {
		data.Open[i] = open[i].ToolCallID
	}
	return s.writeOwn("chat."+kindBoundary, data)
}
