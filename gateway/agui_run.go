package gateway

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
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

	follower *feed.Follower // after the chat was read
	open     *openRun
	leave    func() // the registry of runs
	watched  *watch

	chat *display.Chat
	view *display.View
	out  *agui.Stream

	first []agui.Event // the snapshot
	room  *room        // of the snapshot

	plan       plan
	doubted    *agui.Message                 // the chat displays another text under its id; the journal knows which one it was
	unsure     bool                          // a message waits for its turn, and only the other gateways know whether one of their runs does too
	results    chan deliveryResult           // results of the answers of this run
	pending    int                           // answers without a result
	sums       map[string]string             // fingerprints of the messages of the plan, by id
	publishing string                        // the message that the journal does not have yet: the messages of the plan come after it
	unstored   map[string]bool               // messages of this run that are not in the journal yet
	decided    map[string]context.CancelFunc // by question: ends the wait for the verdict on an answer of this run; until the journal shows the verdict
	last       time.Time                     // when the chat had its last stored event
	begun      time.Time
	stopAt     time.Time      // when a stop came; zero if none did
	cancels    sync.WaitGroup // of turns, after a stop
	complete   bool           // the orchestrator has reported the end of its run
}

// delivered is what the follower of a run has delivered: events that were there already, and what came after them.
type delivered struct {
	events []*feed.Event
	err    error
}

func newRun(g *Gateway, c *call, in *agui.RunAgentInput, connect bool) *run {
	r := &run{
		g: g, c: c, in: in, connect: connect, open: &openRun{connect: connect, stop: make(chan struct{}, 1)}, results: make(chan deliveryResult),
		view: viewOf(in, c.target.User), unstored: map[string]bool{}, sums: map[string]string{}, decided: map[string]context.CancelFunc{}, begun: time.Now(),
	}
	r.leave = g.runs.enter(runKey{c.target.App, c.target.Chat, in.RunID}, r.open)
	return r
}

func (r *run) close() {
	r.leave()
	r.leaveRoom()
	if r.follower != nil {
		r.follower.Close()
	}
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

// sizeOf estimates the bytes of its input that a view keeps in memory.
func sizeOf(v *display.View) (size int) {
	const perName, perAnswer = 64, 512
	for name := range v.Tools {
		size += perName + len(name)
	}
	for id, m := range v.Answers {
		size += perAnswer + 2*len(id) + len(m.ID) + len(m.Content.Text) + len(m.Error) + len(m.Metadata) + perAnswer*len(m.Content.Parts)
		for _, part := range m.Content.Parts {
			size += len(part.Data) + len(part.Metadata) + len(part.URL)
			if part.Text != nil {
				size += len(*part.Text)
			}
			if part.Source != nil {
				size += len(part.Source.Value)
			}
		}
	}
	return size
}

// promptly is how long a run may read its chat before its stream begins: clients take a reply without headers
// for a failure after ten seconds. What refuses a run later than that is sent as RUN_ERROR.
const promptly = 2 * time.Second

// serve reads the chat and streams the run until it is over, or its client is gone. Its error refuses the run: nothing was sent.
func (r *run) serve(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	loaded := make(chan struct{})
	defer func() { // the reading uses the run
		cancel()
		<-loaded
	}()
	var failed error
	go func() {
		defer close(loaded)
		failed = r.load(reading)
	}()
	late := time.NewTimer(promptly)
	defer late.Stop()
	displayed := *r.in
	select {
	case <-loaded:
		if failed != nil {
			return r.refusal(ctx, failed)
		}
		if !r.chat.Empty() { // the snapshot replaces what the client has
			displayed.Messages = nil
		}
		if err := r.begin(ctx, &displayed); err != nil {
			return r.fail(ctx, err)
		}
	case <-late.C:
		displayed.Messages = nil
		if err := r.begin(ctx, &displayed); err != nil {
			return r.fail(ctx, err)
		}
		r.wait(loaded)
		if failed != nil {
			return r.fail(ctx, failed)
		}
	}
	return r.stream(ctx)
}

// wait keeps the stream alive until the chat was read.
func (r *run) wait(loaded <-chan struct{}) {
	keepAlive := time.NewTicker(r.g.o.KeepAlive)
	defer keepAlive.Stop()
	for {
		select {
		case <-loaded:
			return
		case <-keepAlive.C:
			_ = r.out.KeepAlive() // a client that is gone ends the reading too
		}
	}
}

// apply applies an event to the chat, and returns what it changes.
func (r *run) apply(e *feed.Event) []display.Change {
	changes := r.chat.Apply(e.Sequence, r.g.decoded(e))
	if e.Sequence > 0 {
		r.last = e.Time
	}
	return changes
}

// decoded is an event as runs apply it, decoded once for all of them; nil if it cannot be read.
func (g *Gateway) decoded(e *feed.Event) *display.Event {
	value, err := e.Decoded(func(e *feed.Event) (any, error) { return display.Decode(e.JSON) })
	if err != nil {
		g.damaged(e.Name.Name(), e.Sequence)
		return nil
	}
	decoded, _ := value.(*display.Event)
	return decoded
}

// begin begins the stream: a client that has the messages of an input knows then that the run was accepted.
func (r *run) begin(ctx context.Context, displayed *agui.RunAgentInput) (err error) {
	r.out, err = agui.NewStream(r.c.w, agui.StreamOptions{Peer: r.in.Peer(), Verifier: agui.NewVerifier(displayed), Write: writeOptions(ctx)})
	if err != nil {
		return err
	}
	return r.out.Send(&agui.RunStarted{ThreadID: r.in.ThreadID, RunID: r.in.RunID, ProtocolVersion: agui.ProtocolVersion})
}

// stream sends the snapshot, and then what happens until the run is over.
func (r *run) stream(ctx context.Context) error {
	r.in = &agui.RunAgentInput{ThreadID: r.in.ThreadID, RunID: r.in.RunID} // a large input need not wait for the end

	r.c.held.keep(sizeOf(r.view) + r.plan.waitingSize())
	if err := r.sendSnapshot(); err != nil {
		return r.fail(ctx, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	items := make(chan delivered)
	ended := make(chan struct{})
	defer func() { // answers that are on their way are stored or not; the client asks again
		cancel(nil)
		<-ended
		for range r.pending {
			<-r.results
		}
		r.cancels.Wait()
	}()
	go func() {
		defer close(ended)
		r.pump(ctx, items)
	}()
	r.publishPlan(ctx)
	return r.fail(ctx, r.follow(ctx, items))
}

// takenTogether is how many events a run takes together.
const takenTogether = 64

// pump passes the events of the follower on until ctx ends.
func (r *run) pump(ctx context.Context, items chan<- delivered) {
	for {
		got := r.next(ctx)
		select {
		case items <- got:
		case <-ctx.Done():
			return
		}
		if got.err != nil {
			return
		}
	}
}

// next waits for an event, and takes with it those that are there already.
func (r *run) next(ctx context.Context) (got delivered) {
	for got.err == nil {
		item, err := r.follower.Next(ctx)
		if err == nil && item.Event != nil { // here, where neither a stop nor the keep-alive waits for it
			err = r.watched.allow(ctx, item.Event)
		}
		if got.err = err; err == nil && item.Event != nil {
			got.events = append(got.events, item.Event)
		}
		if !r.watched.known || !r.follower.Pending() || len(got.events) == takenTogether { // what allow may wait for delays no others
			break
		}
	}
	return got
}

// sendSnapshot sends what there is before anything new.
func (r *run) sendSnapshot() error {
	first := r.first
	r.first = nil
	defer r.leaveRoom()
	if len(first) == 0 {
		return nil
	}
	return r.out.SendWithID(strconv.FormatUint(r.chat.Sequence(), 10), first...)
}

// leaveRoom frees the memory of the snapshot.
func (r *run) leaveRoom() {
	if r.room != nil {
		r.room.free()
		r.room = nil
	}
}

// follow sends what happens until the run is over.
func (r *run) follow(ctx context.Context, items <-chan delivered) error {
	keepAlive := time.NewTicker(r.g.o.KeepAlive)
	defer keepAlive.Stop()
	quiet := time.NewTimer(longest)
	defer quiet.Stop()
	var got delivered
	for {
		end, wait := r.terminalEvent(time.Now())
		if end != nil {
			return r.out.Send(append(r.view.Finish(), end)...)
		}
		var err error
		if len(got.events) == 0 {
			if err := r.out.Flush(); err != nil {
				return err
			}
			if got.err != nil {
				return got.err
			}
			quiet.Reset(wait)
			got, err = r.await(ctx, items, keepAlive.C, quiet.C)
		}
		if err == nil && len(got.events) > 0 {
			err = r.handleEvent(ctx, got.events[0])
			got.events = got.events[1:]
		}
		if err != nil {
			return err
		}
	}
}

// await waits for events or for anything else that a run has to do, and does that.
func (r *run) await(ctx context.Context, items <-chan delivered, keepAlive, quiet <-chan time.Time) (got delivered, err error) {
	select {
	case got = <-items:
		if len(got.events) == 0 {
			err = got.err
		}
	case a := <-r.results:
		err = r.handleResult(ctx, a)
	case <-r.open.stop:
		r.stop(ctx)
	case <-keepAlive:
		err = r.out.KeepAlive()
	case <-quiet:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return got, err
}

// handleEvent sends what an event has changed, together with what the events after it change.
func (r *run) handleEvent(ctx context.Context, e *feed.Event) error {
	if e.Kind == events.KindRunComplete {
		r.completed(e)
		return nil
	}
	changes := r.apply(e)
	if err := r.noteStored(ctx, e); err != nil {
		return err
	}
	out := r.view.Render(r.chat, changes)
	if len(out) == 0 {
		return nil
	}
	id := ""
	if e.Sequence > 0 {
		id = strconv.FormatUint(e.Sequence, 10)
	}
	return r.out.Queue(id, out...)
}

// fail ends a stream that cannot continue. A stream without a terminal event looks like success to clients.
func (r *run) fail(ctx context.Context, err error) error {
	if err == nil || r.c.r.Context().Err() != nil { // over, or the client has left
		return nil //nolint:nilerr // there is no reader
	}
	end := &agui.RunError{Code: codeUnavailable, Message: "the gateway cannot continue this stream: connect again"}
	switch cause := cmp.Or(context.Cause(ctx), err); {
	case errors.Is(cause, auth.ErrTokenExpired), errors.Is(cause, auth.ErrTokenInvalid):
		end = &agui.RunError{Code: "token_expired", Message: "the token has expired or was revoked: get a new one and connect again"}
	case errors.Is(cause, errDraining), errors.Is(err, feed.ErrClosed), errors.Is(err, feed.ErrJournalReplaced):
	default:
		p := r.g.refusalOf(err)
		end.Code, end.Message = p.code, p.message
		r.g.logRefusal(ctx, r.c.endpoint, r.c.target.App, p)
	}
	if r.out.Send(append(r.view.Finish(), end)...) != nil { // such as the end of a step whose start was refused
		_ = r.out.Send(end) // a client that is gone gets nothing
	}
	return nil
}
