package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/subjects"
)

// Texts of users. Workers handle messages at the same time, so a sender that has several waits until one is in the journal before it
// publishes the next one: else they would be stored in another order than they were sent.

// sender publishes the messages of one sender, one after the other.
type sender struct {
	g      *Gateway
	id     *auth.Identity
	target auth.Target
	late   bool  // the last message was not handled in time
	failed error // why a message could not be published; nothing is published after it, which would overtake it
}

// Times of a message.
const (
	publishTime = 5 * time.Second
	lateWait    = 250 * time.Millisecond // after a message that was not handled in time, since probably no worker runs, and in a drain
	firstReread = 50 * time.Millisecond  // without a live copy; doubled each time
)

// send publishes a message, also if its client leaves meanwhile, and waits a little until the journal has it. It returns the code of
// the outcome.
func (s *sender) send(ctx context.Context, m *oneturn.UserMessage) (events.AnswerCode, error) {
	ctx = context.WithoutCancel(ctx)
	key := subjects.MessageKey(m.App, m.Chat, m.Run, m.Message)
	changed := make(chan struct{}, 1)
	live, err := s.g.o.NATS.Subscribe(s.g.space.EventOfTurn(key, events.RecordText), func(*nats.Msg) {
		select {
		case changed <- struct{}{}:
		default: // one is enough
		}
	})
	if err == nil {
		defer func() { _ = live.Unsubscribe() }() // fails only on a closed connection
		err = s.publish(ctx, m)
	}
	switch {
	case errors.Is(err, errReplayed):
		return events.AnswerReplayed, nil
	case err != nil:
		return "", err
	}
	s.late = !s.awaitStored(ctx, key, changed)
	if s.late {
		return api.CodePublished, nil
	}
	return events.AnswerAccepted, s.g.checkStored(ctx, m) // another one may have come first
}

// publish publishes a message, unless the gateway is closed.
func (s *sender) publish(ctx context.Context, m *oneturn.UserMessage) (err error) {
	if s.failed != nil {
		return s.failed
	}
	defer func() {
		if err == nil || errors.Is(err, errReplayed) {
			return
		}
		if p := s.g.refusalOf(err); p.status >= http.StatusInternalServerError || p.status == http.StatusTooManyRequests {
			s.failed = err
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-s.g.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.g.publishMessage(ctx, s.id, s.target, m)
}

// awaitStored waits until the journal has a message.
func (s *sender) awaitStored(ctx context.Context, key subjects.Key, changed <-chan struct{}) bool {
	end := time.NewTimer(verdictWait)
	defer end.Stop()
	hurry := s.g.draining.Done()
	if s.late {
		end.Reset(lateWait)
		hurry = nil
	}
	for pause := firstReread; ; pause *= 2 {
		again := time.NewTimer(pause)
		select {
		case <-changed:
		case <-again.C:
		case <-hurry:
			end.Reset(lateWait)
			hurry = nil
		case <-end.C:
			again.Stop()
			return false
		case <-s.g.ending:
			again.Stop()
			return false
		}
		again.Stop()
		if s.isStored(ctx, key) {
			return true
		}
	}
}

// isStored reports whether the journal has a message, as far as it can be read now.
func (s *sender) isStored(ctx context.Context, key subjects.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	_, err := s.g.journal(ctx).store.Last(ctx, key.Public(events.RecordText))
	return err == nil
}

// errReplayed means that the journal has a message already.
var errReplayed = errors.New("the message is stored already")

// publishMessage publishes what a user has written into a chat, unless the journal has it: then the error is errReplayed, or a refusal
// if its id has another content.
func (g *Gateway) publishMessage(ctx context.Context, id *auth.Identity, t auth.Target, m *oneturn.UserMessage) error {
	if _, err := g.mayUseChat(ctx, id, t); err != nil {
		return err
	}
	switch err := g.checkStored(ctx, m); {
	case err == nil:
		return errReplayed
	case !errors.Is(err, errNotStored):
		return err
	}
	client, err := oneturn.NewClient(g.o.NATS, oneturn.ClientOptions{Prefix: g.o.Prefix, Pool: g.o.Pool})
	if err != nil {
		return err
	}
	_, err = client.PublishUserMessage(ctx, m)
	if errors.Is(err, events.ErrBadArgs) || errors.Is(err, events.ErrTooLarge) {
		return refusalOfBody(err)
	}
	return err
}

// errNotStored means that the journal does not have a message, or cannot be read now: what is published decides.
var errNotStored = errors.New("the message is not stored")

// codeConflict is the code of a message whose id has another content in the journal. Workers refuse it too.
const codeConflict = "conflict"

func conflicting() *refusedError {
	return refuse(http.StatusConflict, codeConflict, "the id of the message was used before with another content, which the chat keeps: send the message with a new id")
}

// checkStored compares a message with the one that the journal has under its id, which never changes.
func (g *Gateway) checkStored(ctx context.Context, m *oneturn.UserMessage) error {
	sum, err := fingerprintOf(m)
	if err != nil {
		return refusalOfBody(err)
	}
	ctx, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	key := subjects.MessageKey(m.App, m.Chat, m.Run, m.Message)
	switch text, err := g.journal(ctx).store.Last(ctx, key.Public(events.RecordText)); {
	case err != nil || text.Err != nil:
		return errNotStored
	case text.Meta.Fingerprint != sum:
		return conflicting()
	}
	return nil
}

// fingerprintOf is the fingerprint that workers store with a message.
func fingerprintOf(m *oneturn.UserMessage) (string, error) {
	content, err := encode(m.Content)
	if err != nil {
		return "", err
	}
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: m.App, Chat: m.Chat, Run: m.Run, Turn: m.Message}, ID: m.Message, User: true,
		Workflow: events.Name(m.Workflow), Agent: events.AgentUser, UserID: m.UserID,
	}
	if e.Content, err = events.Decode(content); err != nil {
		return "", err
	}
	sum, err := e.Fingerprint()
	return events.Hex(sum), err
}
