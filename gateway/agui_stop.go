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
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
)

// Stop requests name a run, which is a stream of a gateway: those that have one of this id reply, and end it. A request that
// names no run is for whatever runs in the chat: its turns and a message that waits for one, which the journal knows, and
// the runs of all gateways that may act.

// stopWait is how long a gateway waits for another one to reply that it has a run.
const stopWait = 750 * time.Millisecond

// runKey identifies a run.
type runKey struct{ app, chat, run string }

// openRun is a run of this gateway.
type openRun struct {
	connect bool
	stop    chan struct{} // holds one when a stop request has come
	follows atomic.Bool   // it may act, and has begun
}

// runs are the runs of this gateway.
type runs struct {
	mu   sync.Mutex
	open map[runKey][]*openRun
}

// enter registers a run until leave is called.
func (s *runs) enter(key runKey, run *openRun) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[runKey][]*openRun{}
	}
	s.open[key] = append(s.open[key], run)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		left := slices.DeleteFunc(s.open[key], func(other *openRun) bool { return other == run })
		if s.open[key] = left; len(left) == 0 {
			delete(s.open, key)
		}
	}
}

// stop stops a run, or without one all that may act in a chat, and reports whether this gateway has any.
func (s *runs) stop(key runKey) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, open := range s.open {
		if at.app != key.app || at.chat != key.chat || key.run != "" && at.run != key.run {
			continue
		}
		for _, run := range open {
			if key.run == "" && run.connect {
				continue
			}
			found = true
			select {
			case run.stop <- struct{}{}:
			default: // it was stopped before
			}
		}
	}
	return found
}

// follows reports whether a run of a chat is open that may act.
func (s *runs) follows(app, chat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed(app, chat)
}

// begin begins a run that may act, unless another one of the chat has.
func (s *runs) begin(app, chat string, run *openRun) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed(app, chat) {
		return false
	}
	run.follows.Store(true)
	return true
}

func (s *runs) followed(app, chat string) bool {
	for key, open := range s.open {
		if key.app == app && key.chat == chat && slices.ContainsFunc(open, func(r *openRun) bool { return r.follows.Load() }) {
			return true
		}
	}
	return false
}

// stopRequest is what gateways ask each other: to stop a run, or, without one, all that may act in the chat; or whether any such run is
// open. With a message it is a notification that no run waits for this message any more.
type stopRequest struct {
	From    string `json:"from"` // the gateway that asks, which does not reply to itself
	App     string `json:"app_id"`
	Chat    string `json:"chat_id"`
	Run     string `json:"run_id,omitempty"`
	Message string `json:"message_id,omitempty"`
	Open    bool   `json:"open,omitempty"`
}

// clockSkew is how much the clocks of gateways and workers may differ.
const clockSkew = 5 * time.Second

// release notifies all gateways, also this one.
func (g *Gateway) release(w stoppedWait) {
	g.released.Add(w, time.Now())
	_ = g.o.NATS.Publish(g.space.GatewayStops(), events.JSONOf(stopRequest{From: g.name, App: w.app, Chat: w.chat, Message: w.message})) // see stoppedWait
}

// waitsForTurn reports whether the next message of a chat has to wait for the turn of one that the user has sent at a time. If only the
// other gateways know, it is unsure.
func (g *Gateway) waitsForTurn(w stoppedWait, since time.Time) (waits, unsure bool) {
	switch {
	case w.message == "" || time.Since(since) >= g.o.FirstTurn || g.released.Has(w, time.Now()):
		return false, false
	case since.After(g.began.Add(clockSkew)) || g.runs.follows(w.app, w.chat):
		return true, false
	}
	return false, true
}

// serveStops replies to other gateways for the runs of this one.
func (g *Gateway) serveStops() (*nats.Subscription, error) {
	sub, err := g.o.NATS.Subscribe(g.space.GatewayStops(), func(m *nats.Msg) {
		var r stopRequest
		if json.Unmarshal(m.Data, &r) != nil || r.From == g.name {
			return
		}
		found := false
		switch {
		case r.Message != "":
			g.released.Add(stoppedWait{r.App, r.Chat, r.Message}, time.Now())
		case r.Open:
			found = g.runs.follows(r.App, r.Chat)
		default:
			found = g.runs.stop(runKey{r.App, r.Chat, r.Run})
		}
		if found {
			_ = m.Respond([]byte(`{}`)) // a gateway that gets no reply answers as if there were no such run, and the client tries again
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to stop requests: %w", err)
	}
	return sub, nil
}

// ask asks the other gateways, and reports whether one has replied that it has the run.
func (g *Gateway) ask(ctx context.Context, r stopRequest) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	r.From = g.name
	_, err := g.o.NATS.RequestWithContext(ctx, g.space.GatewayStops(), events.JSONOf(r))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
		return false, nil // no gateway has it
	}
	return false, unavailable(err)
}

// stop serves a stop request: it stops the run that the body names, or what runs in the chat.
func (g *Gateway) stop(c *call, workflow, chat string, body []byte) (err error) {
	var runID string
	if err := c.decode(body, func() error {
		runID, err = agui.ReadStop(bytes.NewReader(body), agui.InputLimits{Bytes: g.o.Limits.Body})
		return refusalOfInput(err)
	}); err != nil {
		return err
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
	}{http.StatusAccepted, "stopping", "a run ends with what its turns have reached, which are cancelled; a connect ends alone"})
	return nil
}

// stopRun stops a run wherever it is. Runs and connects of several gateways may have one id: a client that was cut begins again at
// another one.
func (g *Gateway) stopRun(ctx context.Context, t auth.Target, run string) (bool, error) {
	found := g.runs.stop(runKey{t.App, t.Chat, run})
	return g.stopElsewhere(ctx, stopRequest{App: t.App, Chat: t.Chat, Run: run}, found)
}

// stopChat ends what runs in a chat: the runs that may act, on all gateways, the turns that have no response, and the wait of a message
// for its turn.
func (g *Gateway) stopChat(ctx context.Context, id *auth.Identity, t auth.Target) (bool, error) {
	stopped := g.runs.stop(runKey{app: t.App, chat: t.Chat})
	unfinished, err := g.workOf(ctx, t)
	if err != nil {
		return false, err
	}
	waiting := stoppedWait{t.App, t.Chat, unfinished.message}
	waits := waiting.message != "" && time.Since(unfinished.since) < g.o.FirstTurn && !g.released.Has(waiting, time.Now())
	if waits {
		g.release(waiting)
	}
	found, err := g.stopElsewhere(ctx, stopRequest{App: t.App, Chat: t.Chat}, stopped || waits || len(unfinished.turns) > 0)
	if err != nil {
		return false, err
	}
	for _, toolCallID := range unfinished.turns {
		if _, err := g.requestCancel(ctx, id, t, cancelRequest{toolCallID: toolCallID, reason: "the user has stopped the chat"}); err != nil {
			return false, err
		}
	}
	return found, nil
}

// stopElsewhere passes a stop request on to the other gateways, and reports whether there is what it stops: one that has found it here
// need not wait for their replies.
func (g *Gateway) stopElsewhere(ctx context.Context, r stopRequest, found bool) (bool, error) {
	if !found {
		return g.ask(ctx, r)
	}
	r.From = g.name
	if err := g.o.NATS.Publish(g.space.GatewayStops(), events.JSONOf(r)); err != nil {
		return false, unavailable(err)
	}
	return true, nil
}

// work is what is unfinished in a chat.
type work struct {
	turns   []string // ids of the calls of the turns that have no response
	message string   // of the user, which waits for its turn
	since   time.Time
}

// workOf reads what is unfinished in a chat.
func (g *Gateway) workOf(ctx context.Context, t auth.Target) (w work, err error) {
	follower, err := g.readChat(ctx, t, func(c *loadedChat) error {
		w.turns = c.chat.OpenTurns()
		w.message, w.since = c.chat.Waiting()
		return nil
	})
	if err != nil {
		return work{}, err
	}
	follower.Close()
	return w, nil
}
