package gateway

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
	"github.com/oneturn/oneturn/internal/feed"
)

// A run of AG-UI is a view of a chat: it begins with what the journal has, continues with what is stored meanwhile, and
// ends when the chat is quiet. It has no state that another gateway lacks. Closing it stops nothing.
//
// agui_plan.go decides what the input asks for, agui_answers.go publishes it, agui_end.go decides when the run is over.

// run is a run that a client has started, or a connect.
type run struct {
	g       *Gateway
	c       *call
	in      *agui.RunAgentInput
	connect bool

	follower *feed.Follower
	stopped  chan struct{} // a stop request for this run has come
	leave    func()        // the registry of runs
	watched  *watch

	chat *display.Chat
	view *display.View
	out  *agui.Stream

	plan     plan
	answers  chan answered   // results of the answers of this run
	pending  int             // answers without a result
	unstored map[string]bool // messages of this run that are not in the journal yet
	decided  map[string]bool // questions that this run has answered, until the journal shows it
	last     time.Time       // when the chat had its last stored event
	begun    time.Time
	stopAt   time.Time // when a stop came; zero if none did
	complete bool      // the orchestrator has reported the end of its run
}

// aguiItem is what the follower of a run has delivered.
type aguiItem struct {
	feed.Item
	err error
}

func newRun(g *Gateway, c *call, in *agui.RunAgentInput, connect bool) *run {
	r := &run{
		g: g, c: c, in: in, connect: connect, stopped: make(chan struct{}, 1), answers: make(chan answered),
		chat: display.New(), view: viewOf(in, c.target.User), unstored: map[string]bool{}, decided: map[string]bool{}, begun: time.Now(),
	}
	r.follower = g.journal(c.r.Context()).feeds.Follow(c.target.App, c.target.Chat, 0)
	r.leave = g.runs.enter(runKey{c.target.App, c.target.Chat, in.RunID}, r.stopped)
	return r
}

func (r *run) close() {
	r.leave()
	r.follower.Close()
}

// viewOf returns what the client has, by its input.
func viewOf(in *agui.RunAgentInput, user string) *display.View {
	v := &display.View{User: user, Tools: map[string]bool{}, Answers: map[string]agui.Message{}, Known: map[string]bool{}}
	for _, t := range in.Tools {
		v.Tools[t.Name] = true
	}
	for _, m := range in.Messages {
		if m.Role == agui.RoleTool && v.Answers[m.ToolCallID].ID == "" {
			v.Answers[m.ToolCallID] = m
		}
	}
	return v
}

// readTime bounds the time until a stream begins: clients take a reply without headers for a failure after ten seconds.
const readTime = 8 * time.Second

// open reads the chat, and decides whether the run may begin: it is refused before anything is sent.
func (r *run) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	for {
		item, err := r.follower.Next(ctx)
		switch {
		case err != nil:
			return r.refusal(ctx, err)
		case item.Boundary != nil:
			owner, err := r.g.ownerFor(ctx, r.c.id, r.c.target)
			if err != nil {
				return err
			}
			r.watched = r.g.watch(r.c.id, r.c.target, owner)
			return r.decide()
		case item.Event != nil:
			r.apply(item.Event)
		}
	}
}

// refusal is how a run is refused that cannot read its chat.
func (r *run) refusal(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDraining) || errors.Is(err, feed.ErrClosed) {
		return draining()
	}
	return unavailable(err)
}

// apply applies an event to the chat, and returns what it changes.
func (r *run) apply(e *feed.Event) []display.Change {
	changes, err := r.chat.Apply(e.Sequence, e.JSON)
	if err != nil {
		r.g.o.Logger.Warn("an event of a chat cannot be displayed", "sequence", e.Sequence, "kind", events.Clip(e.Kind), "err", events.LogText(err))
	}
	if e.Sequence > 0 {
		r.last = e.Time
	}
	return changes
}

// serve streams the run until it is over, or its client is gone.
func (r *run) serve(ctx context.Context) error {
	var err error
	displayed := *r.in
	if !r.chat.Empty() { // the snapshot replaces what the client has
		displayed.Messages = nil
	}
	if r.out, err = agui.NewStream(r.c.w, agui.StreamOptions{Peer: r.in.Peer(), Verifier: agui.NewVerifier(&displayed), WriteTimeout: writeTime}); err != nil {
		return nil
	}
	if err := r.prelude(); err != nil {
		return r.broken(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	items := make(chan aguiItem)
	ended := make(chan struct{})
	defer func() { // answers that are on their way are stored or not; the client asks again
		cancel(nil)
		<-ended
		for range r.pending {
			<-r.answers
		}
	}()
	go func() {
		defer close(ended)
		r.pump(ctx, items)
	}()
	r.act(ctx)
	return r.broken(ctx, r.tail(ctx, items))
}

// pump passes the items of the follower on until ctx ends.
func (r *run) pump(ctx context.Context, items chan<- aguiItem) {
	for {
		item, err := r.follower.Next(ctx)
		select {
		case items <- aguiItem{item, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// prelude sends what there is before anything new.
func (r *run) prelude() error {
	first := []agui.Event{&agui.RunStarted{ThreadID: r.in.ThreadID, RunID: r.in.RunID, ProtocolVersion: agui.ProtocolVersion}}
	id := ""
	if !r.chat.Empty() {
		first = append(first, r.view.Snapshot(r.chat, r.plan.messages)...)
		first = append(first, r.view.Activities(r.chat)...)
		id = strconv.FormatUint(r.chat.Sequence(), 10)
	}
	r.chat.Forget()
	r.in = &agui.RunAgentInput{ThreadID: r.in.ThreadID, RunID: r.in.RunID} // a large input need not wait for the end
	return r.out.SendWithID(id, first...)
}

// tail sends what happens until the run is over.
func (r *run) tail(ctx context.Context, items <-chan aguiItem) error {
	keepAlive := time.NewTicker(r.g.o.KeepAlive)
	defer keepAlive.Stop()
	for {
		end, wait := r.end(time.Now())
		if end != nil {
			return r.out.Send(append(r.view.Finish(), end)...)
		}
		quiet := time.NewTimer(wait)
		var err error
		select {
		case item := <-items:
			err = r.took(ctx, item)
		case a := <-r.answers:
			err = r.answered(ctx, a)
		case <-r.stopped:
			r.stopTurns(ctx)
		case <-keepAlive.C:
			err = r.out.KeepAlive()
		case <-quiet.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		quiet.Stop()
		if err != nil {
			return err
		}
	}
}

// took sends what an event has changed.
func (r *run) took(ctx context.Context, item aguiItem) error {
	switch {
	case item.err != nil:
		return item.err
	case item.Event == nil: // the replay is over
		return nil
	}
	e := item.Event
	if err := r.watched.allow(ctx, e); err != nil {
		return err
	}
	if e.Kind == events.KindRunComplete {
		r.completed(e)
		return nil
	}
	changes := r.apply(e)
	r.noteStored(ctx, e)
	out := r.view.Render(r.chat, changes)
	if len(out) == 0 {
		return nil
	}
	id := ""
	if e.Sequence > 0 {
		id = strconv.FormatUint(e.Sequence, 10)
	}
	return r.out.SendWithID(id, out...)
}

// broken ends a stream that cannot continue. A stream without a terminal event looks like success to clients.
func (r *run) broken(ctx context.Context, err error) error {
	if err == nil || r.c.r.Context().Err() != nil { // over, or the client has left
		return nil //nolint:nilerr // there is no reader
	}
	end := &agui.RunError{Code: codeUnavailable, Message: "the gateway cannot continue this stream: connect again"}
	switch cause := cmp.Or(context.Cause(ctx), err); {
	case errors.Is(cause, errExpired), errors.Is(cause, errRevoked):
		end = &agui.RunError{Code: "token_expired", Message: "the token has expired or was revoked: get a new one and connect again"}
	case errors.Is(cause, errDraining), errors.Is(err, feed.ErrClosed), errors.Is(err, feed.ErrJournalReplaced):
	default:
		p := refusalOf(err)
		end.Code, end.Message = p.code, p.message
		r.g.logRefusal(ctx, r.c.door, r.c.target.App, p)
	}
	_ = r.out.Send(append(r.view.Finish(), end)...) // a client that is gone gets nothing
	return nil
}
