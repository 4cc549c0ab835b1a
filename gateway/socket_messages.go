package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/internal/pause"
)

// The messages of the user on a socket, which are stored in the order of their frames.

// heldBack are messages of a socket that were refused because the user sends too much, and that its client will send again. It may have
// sent others before it knew that: for a while they are refused as well, so that they do not overtake those before. The zero value is
// usable.
type heldBack struct {
	ids   []string // in the order of their frames
	until time.Time
}

// mostHeld bounds the ids: what comes when there are so many is refused all the same.
const mostHeld = 64

// refused notes a frame that was refused, and for how long the client has to wait.
func (h *heldBack) refused(f *frame, retry time.Duration) {
	if !isInput(f.kind) || f.answersQuestion() {
		return
	}
	id, now := f.id("message_id", "id"), time.Now()
	if now.After(h.until) {
		h.ids = nil
	}
	if len(h.ids) == 0 || h.ids[0] == id { // else a client that has given up the first one would wait as long as it sends others
		h.until = now.Add(max(retry, time.Second))
	}
	h.hold(id)
}

func (h *heldBack) hold(id string) {
	if len(h.ids) < mostHeld && !slices.Contains(h.ids, id) {
		h.ids = append(h.ids, id)
	}
}

// first reports whether a frame is the message that has to come first.
func (h *heldBack) first(f *frame) bool {
	return len(h.ids) > 0 && isInput(f.kind) && h.ids[0] == f.id("message_id", "id")
}

// awaitTurn waits until the message that has to come first may be sent, and reports whether it may: what its client sends after it would
// else use up what the user may send again and again.
func (s *socket) awaitTurn(ctx context.Context, f *frame) bool {
	const tries = 8
	for range tries {
		if !s.held.first(f) || pause.For(ctx, limitedPause) != nil {
			return false
		}
		if s.g.countRequest(s.id, s.target) == nil {
			return true
		}
	}
	return false
}

// allow refuses a message that would overtake one that was refused before.
func (h *heldBack) allow(id string) error {
	left := time.Until(h.until)
	switch {
	case len(h.ids) == 0:
		return nil
	case left <= 0: // its client has given up
		h.ids = nil
		return nil
	case h.ids[0] == id:
		h.ids = h.ids[1:]
		return nil
	}
	h.hold(id)
	p := refuse(http.StatusTooManyRequests, codeRateLimited, "a message before this one was refused: send that one first, then this one again")
	p.retry = left
	return p
}

// messageOf reads the message of a user in a frame. Without an id it is another message each time.
func (s *socket) messageOf(f *frame) (*oneturn.UserMessage, error) {
	text := textAt(f.data, "text", "content")
	if text == "" {
		return nil, missingField("text")
	}
	id := textAt(f.data, "message_id", "id")
	if id == "" {
		id = "u-" + rand.Text()
	}
	return &oneturn.UserMessage{
		MessageID: oneturn.MessageID{App: s.target.App, Chat: s.target.Chat, Run: textAt(f.data, "run_id"), Message: id},
		Workflow:  s.target.Workflow, UserID: s.target.User, Content: text,
	}, nil
}

// publish publishes the message of the user, after those before it. If it cannot be published now, the socket ends: the client
// sends it again, and no later one overtakes it.
func (s *socket) publish(ctx context.Context, m *oneturn.UserMessage) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errCloseByClient) {
		return cause
	}
	if s.sender.failed != nil {
		return errCloseFailed
	}
	a := ack{MessageID: m.Message}
	code, err := s.sender.send(ctx, m)
	done := ack{Status: http.StatusOK, Code: string(code), Message: "the message is stored"}
	if code == api.CodePublished {
		done = published("the message is published, and no worker has stored it in the chat yet: one that runs will")
	}
	a.outcome(ctx, s.g, err, done)
	if err := s.writeOwn("ack.input", a); err != nil || s.sender.failed == nil {
		return err
	}
	return errCloseFailed
}
