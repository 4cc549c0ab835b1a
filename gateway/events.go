package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/feed"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

// The stored events of a chat: pages, or a stream that continues live.

// Events in a page.
const (
	defaultPage = 100
	largestPage = 1_000
)

// page is a page of frames. Next is the cursor of the next page, 0 after the last one. Reset means that the cursor was of a
// journal that no longer exists, so that the page is the first one.
type page struct {
	Status  int               `json:"status"`
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Events  []json.RawMessage `json:"events"`
	Next    uint64            `json:"next,omitempty"`
	Reset   bool              `json:"reset,omitempty"`
}

// events is GET /api/chats/{app}/{chat}/events.
func (g *Gateway) events(c *call) error {
	after, err := cursorOf(c.r)
	if err != nil {
		return err
	}
	if acceptsStream(c.r) {
		return g.eventStream(c, after)
	}
	limit := defaultPage
	if text := c.r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > largestPage {
			return refuse(http.StatusBadRequest, "bad_limit", "limit is not a number from 1 to 1000")
		}
	}
	if _, err := g.mayUseChat(c.r.Context(), c.id, c.target); err != nil {
		return err
	}
	reset, err := g.journal(c.r.Context()).feeds.IsBeyond(c.r.Context(), after)
	if err != nil {
		return err
	}
	if reset {
		after = 0
	}
	found, err := g.page(c.r.Context(), c.target, after, limit)
	if err != nil {
		return err
	}
	found.Reset = reset
	writeJSON(c.w, http.StatusOK, found)
	return nil
}

// page reads a page of frames.
func (g *Gateway) page(ctx context.Context, t auth.Target, after uint64, limit int) (*page, error) {
	history, err := g.journal(ctx).histories.History(ctx, subjects.Token(t.App), t.Chat, after, math.MaxUint64, limit)
	if err != nil {
		return nil, err
	}
	p := &page{Status: http.StatusOK, Code: codeOK, Message: "the stored events of the chat", Events: []json.RawMessage{}}
	for i := range history.Records {
		rec := &history.Records[i]
		name, ok := subjects.ParseKey(rec.Key)
		if !ok {
			continue
		}
		frame, err := frameOf(rec.Data, name, rec.Seq, false)
		if rec.Damaged() || err != nil {
			g.damaged(rec.Key, rec.Seq)
			continue
		}
		if frame != nil {
			p.Events = append(p.Events, frame)
		}
	}
	if history.Through != math.MaxUint64 {
		p.Next = history.Through
	}
	return p, nil
}

// cursorOf returns the sequence after which a client wants events: the header that browsers send after a cut wins.
func cursorOf(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "bad_cursor", "the cursor is not a sequence: send as after or Last-Event-ID the sequence of the last event, or 0")
	}
	return after, nil
}

func acceptsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}

// eventStream sends the stored events of a chat after a cursor, and new ones as they are stored.
func (g *Gateway) eventStream(c *call, after uint64) error {
	owner, err := g.ownerFor(c.r.Context(), c.id, c.target)
	if err != nil {
		return err
	}
	leave, err := g.enterStream(c.endpoint, c.target)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := g.streamContext(c.r.Context(), c.id)
	defer cancel()
	stream, err := newEventStream(ctx, c.w)
	if err != nil {
		return nil // the client is gone
	}
	c.end(http.StatusOK)
	watched := g.watch(c.id, c.target, owner)
	watched.waiting = stream.frames.KeepAlive
	follower := g.journal(ctx).feeds.Follow(c.target.App, c.target.Chat, after).For(c.target.User)
	defer follower.Close()
	for begun := false; ; {
		item, err := nextWithin(ctx, follower, g.o.KeepAlive)
		if err == nil && !begun {
			if begun = true; follower.Reset() { // before what it makes the client drop
				err = stream.event("reset", 0, []byte(`{"reset":true}`))
			}
		}
		switch {
		case errors.Is(err, errQuiet):
			err = stream.frames.KeepAlive()
		case err != nil:
		case item.Event != nil:
			err = g.queueEvent(ctx, stream, watched, item.Event)
		}
		if err != nil || !follower.Pending() || !watched.known {
			err = errors.Join(err, stream.frames.Flush())
		}
		if err != nil {
			return nil // the client connects again, with its cursor
		}
	}
}

// queueEvent queues an event.
func (g *Gateway) queueEvent(ctx context.Context, stream *eventStream, watched *watch, e *feed.Event) error {
	if e.Sequence == 0 {
		return nil // it is not stored
	}
	if err := watched.allow(ctx, e); err != nil {
		return err
	}
	frame := g.frame(e)
	if frame == nil {
		return nil
	}
	g.metrics.streamEvents.Inc()
	return stream.event("", e.Sequence, frame)
}

// frame returns the frame of an event; nil for one that people may not see, or that is damaged.
func (g *Gateway) frame(e *feed.Event) []byte {
	frame, err := preparedFrame(e)
	if err != nil {
		g.damaged(e.Name.Name(), e.Sequence)
		return nil
	}
	return frame
}

// errQuiet means that a chat had no event for a while.
var errQuiet = errors.New("no event")

// nextWithin is the next item of a follower, or errQuiet.
func nextWithin(ctx context.Context, follower *feed.Follower, wait time.Duration) (feed.Item, error) {
	if follower.Pending() {
		return follower.Next(ctx)
	}
	within, cancel := context.WithTimeoutCause(ctx, wait, errQuiet)
	defer cancel()
	item, err := follower.Next(within)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return feed.Item{}, errQuiet
	}
	return item, err
}

// streamContext returns a context that ends with the token of a stream, with the drain of the gateway, or with its parent.
func (g *Gateway) streamContext(parent context.Context, id *auth.Identity) (context.Context, func()) {
	ofToken, endToken := id.Context(parent)
	ctx, end := context.WithCancelCause(ofToken)
	stop := context.AfterFunc(g.draining, func() { end(errDraining) })
	return ctx, func() {
		stop()
		end(nil)
		endToken()
	}
}

// watch keeps a user from following a chat that turns out to belong to another one: a chat without turns has no owner
// yet.
type watch struct {
	g      *Gateway
	id     *auth.Identity
	target auth.Target
	owned  bool // the owner was checked
	known  bool // and nothing else has to be

	waiting func() error // called while an event is held back; nil for nothing
}

// watch returns the watch of a chat whose owner was read, "" if it has none yet.
func (g *Gateway) watch(id *auth.Identity, t auth.Target, owner string) *watch {
	w := &watch{g: g, id: id, target: t}
	w.checked(owner)
	return w
}

// checked notes that the owner was read. A chat may continue in another workflow.
func (w *watch) checked(owner string) {
	w.owned = owner != ""
	w.known = w.owned && w.id.Workflows == nil
}

// allow checks the owner again when an event may have given the chat one. It holds the event back until the owner can be read.
func (w *watch) allow(ctx context.Context, e *feed.Event) error {
	if w.known || e.Name.Kind != events.RecordCall && e.Name.Kind != events.RecordText {
		return nil
	}
	if w.owned && e.Replay { // it was stored when the chat was checked, or its owner is known
		return nil
	}
	return repeat(ctx, w.waiting, func(ctx context.Context) error {
		owner, err := w.g.ownerFor(ctx, w.id, w.target)
		w.checked(owner)
		return err
	})
}

// Pauses between the attempts of a read that an open stream needs.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// repeat repeats a read until it succeeds, its user is refused, or ctx ends: neither a throttle nor a failed read ends an open stream.
// What follows waits in the journal. Waiting is called before each pause.
func repeat(ctx context.Context, waiting func() error, read func(ctx context.Context) error) error {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		attempt, cancel := context.WithTimeout(ctx, readPatience)
		err := read(attempt)
		cancel()
		var denied *auth.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &denied) && denied.Status() < http.StatusInternalServerError || errors.Is(err, idempotency.ErrTooMany) {
			return err
		}
		if waiting != nil {
			if err := waiting(); err != nil {
				return err
			}
		}
		if ended := pause.For(ctx, wait); ended != nil {
			return ended
		}
	}
}
