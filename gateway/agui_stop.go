package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/gateway/display"
)

// Stop requests name a run, which is a stream of one gateway: the one that has it replies, and ends it. A request that
// names no run is for whatever runs in the chat, which the journal knows.

// stopWait is how long a gateway waits for another one to reply that it has a run.
const stopWait = 750 * time.Millisecond

// runKey identifies a run.
type runKey struct{ app, chat, run string }

// runs are the runs of this gateway.
type runs struct {
	mu   sync.Mutex
	open map[runKey][]chan<- struct{}
}

// enter registers a run until leave is called.
func (s *runs) enter(key runKey, stop chan<- struct{}) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[runKey][]chan<- struct{}{}
	}
	s.open[key] = append(s.open[key], stop)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		left := slices.DeleteFunc(s.open[key], func(other chan<- struct{}) bool { return other == stop })
		if s.open[key] = left; len(left) == 0 {
			delete(s.open, key)
		}
	}
}

// stop stops a run, and reports whether this gateway has it.
func (s *runs) stop(key runKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stop := range s.open[key] {
		select {
		case stop <- struct{}{}:
		default: // it was stopped before
		}
	}
	return len(s.open[key]) > 0
}

// stopRequest is what gateways ask each other, or a notification of a message that no run waits for any more.
type stopRequest struct {
	App     string `json:"app_id"`
	Chat    string `json:"chat_id"`
	Run     string `json:"run_id,omitempty"`
	Message string `json:"message_id,omitempty"`
}

// stoppedWait is a user's message that waits for its turn, in a run that the user has stopped. It does not keep the next message
// away. Gateways that start later do not know it: there the next message is refused until the time for the turn is over.
type stoppedWait struct{ app, chat, message string }

// stoppedWaits bounds those that a gateway remembers.
const stoppedWaits = 10_000

// release notifies all gateways, also this one.
func (g *Gateway) release(w stoppedWait) {
	g.released.Add(w, time.Now())
	_ = g.o.NATS.Publish(g.space.GatewayStops(), events.JSONOf(stopRequest{App: w.app, Chat: w.chat, Message: w.message})) // see stoppedWait
}

// serveStops replies to other gateways for the runs of this one.
func (g *Gateway) serveStops() (*nats.Subscription, error) {
	sub, err := g.o.NATS.Subscribe(g.space.GatewayStops(), func(m *nats.Msg) {
		var r stopRequest
		if json.Unmarshal(m.Data, &r) != nil {
			return
		}
		if r.Message != "" {
			g.released.Add(stoppedWait{r.App, r.Chat, r.Message}, time.Now())
			return
		}
		if g.runs.stop(runKey{r.App, r.Chat, r.Run}) {
			_ = m.Respond([]byte(`{}`)) // a gateway that gets no reply answers 404, and the client tries again
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to stop requests: %w", err)
	}
	return sub, nil
}

// stop is the stop door: of the run that the body names, or of what runs in the chat.
func (g *Gateway) stop(c *call, workflow, chat string, body []byte) error {
	runID, err := agui.ReadStop(bytes.NewReader(body), agui.InputLimits{Bytes: g.o.Limits.Body})
	if err != nil {
		return refusalOfInput(err)
	}
	if err := checkID("threadId", chat); err != nil {
		return err
	}
	if err := g.aguiTarget(c, workflow, chat); err != nil {
		return err
	}
	var stopped bool
	if runID != "" {
		stopped, err = g.stopRun(c.r.Context(), c.target, runID)
	} else {
		stopped, err = g.stopChat(c.r.Context(), c.id, c.target)
	}
	switch {
	case err != nil:
		return err
	case !stopped:
		return refuse(http.StatusNotFound, "not_running", "there is no such run in this chat: it may have ended")
	}
	writeJSON(c.w, http.StatusAccepted, struct {
		Status  int    `json:"status"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{http.StatusAccepted, "stopping", "the turns of the chat are cancelled: the run ends with what they have reached"})
	return nil
}

// stopRun stops a run of this or another gateway.
func (g *Gateway) stopRun(ctx context.Context, t auth.Target, run string) (bool, error) {
	if g.runs.stop(runKey{t.App, t.Chat, run}) {
		return true, nil
	}
	data := events.JSONOf(stopRequest{App: t.App, Chat: t.Chat, Run: run})
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	_, err := g.o.NATS.RequestWithContext(ctx, g.space.GatewayStops(), data)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
		return false, nil // no gateway has it
	}
	return false, unavailable(err)
}

// stopChat cancels the turns of a chat that have no response.
func (g *Gateway) stopChat(ctx context.Context, id *auth.Identity, t auth.Target) (bool, error) {
	turns, err := g.openTurns(ctx, t)
	for _, toolCallID := range turns {
		if err := g.requestCancel(ctx, id, t, cancelRequest{toolCallID: toolCallID, reason: "the user has stopped the chat"}); err != nil {
			return false, err
		}
	}
	return len(turns) > 0, err
}

// openTurns returns the ids of the calls of the turns of a chat that have no response.
func (g *Gateway) openTurns(ctx context.Context, t auth.Target) ([]string, error) {
	follower := g.journal(ctx).feeds.Follow(t.App, t.Chat, 0)
	defer follower.Close()
	chat := display.New()
	for {
		item, err := follower.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case item.Boundary != nil:
			return chat.OpenTurns(), nil
		}
		_, _ = chat.Apply(item.Event.Sequence, item.Event.JSON) // what cannot be read has no turn to stop
	}
}
