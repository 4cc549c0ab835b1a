package handlers

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// How often who waits in memory looks by itself: the live copy of an ack may get lost.
const (
	firstLook = 5 * time.Second
	lastLook  = time.Minute
)

// What becomes of questions that nobody in this process waits for any more.
const (
	leftOpen   = "left"   // the tool has given it up, or its run is over
	leftParked = "parked" // another run will get the answer
)

// waiting is what a run knows of its open questions. It is guarded by the mutex of the run.
type waiting struct {
	open    map[string]*question // by token
	count   int                  // of those that are on the screen
	touched time.Time            // when something happened at the desk last
	timer   Timer                // of the next look whether to park
	asked   bool                 // the run has come to a question
	told    bool                 // frontends know that the turn waits
	counted bool                 // the run is one of those that wait and can be parked

	reserved bool // it has a place among those that must not be parked
	asking   int  // calls of ask that have not returned
	away     bool // it takes no slot
	crowded  bool // too many wait: it parks at once
}

// waits are the runs that wait in memory: for people, if they can be parked or must not be, and for
// limits.
type waits struct {
	parkable        atomic.Int64
	asking, limited *budget
}

// touch notes that something happens at the desk.
func (r *run) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.touched = time.Now()
}

// ask puts a question up, unless an earlier run has. A reply that is there already is taken.
func (r *run) ask(d *desk, q *question) (reply idempotency.Reply, err error) {
	if err := r.reserve(); err != nil {
		return reply, err
	}
	defer r.unreserve()
	r.listen(q)
	err = r.do(d, func(hold idempotency.Hold) error {
		r.hit(failpoint.BeforeAsk)
		err := r.judge(r.persist(func(ctx context.Context) (err error) {
			reply, err = r.h.Journal.Ask(ctx, hold, q.Question)
			return err
		}))
		if err != nil {
			return err
		}
		r.h.Metrics.Asked.Inc()
		if reply.Outcome != idempotency.Open {
			return r.take(hold, q, reply)
		}
		r.schedule(q)
		r.opened(q)
		r.hit(failpoint.AfterAsk)
		return nil
	})
	if err != nil {
		r.left(q, leftOpen)
	}
	return reply, err
}

// wait waits in memory until a question is decided or the run is over. A run that has lost its
// lease looks what has become of its turn; an unsafe one waits on if nothing has.
func (r *run) wait(ctx context.Context, d *desk, q *question) (idempotency.Reply, error) {
	pause := firstLook
	next := pause + rand.N(2*pause) // many may have asked at once
	for {
		if r.h.Timing.Wait(ctx, r.lives(), q.wake, q.over, next) {
			pause = min(2*pause, lastLook)
		}
		switch {
		case closed(q.over):
			if err := d.stopped(r.tools); err != nil {
				return idempotency.Reply{}, err
			}
			return idempotency.Reply{}, errRunOver
		case ctx.Err() != nil:
			return idempotency.Reply{}, r.giveUp(ctx, d, q)
		case r.lives().Err() != nil:
			return idempotency.Reply{}, r.judge(context.Cause(r.lives()))
		}
		reply, err := r.look(ctx, d, q)
		if err != nil || reply.Outcome != idempotency.Open {
			return reply, err
		}
		next = pause - rand.N(pause/2)
	}
}

// giveUp ends a wait that the tool has ended by itself, and returns why the tool has to go on
// without an answer. What it does then is code behind the question, which a tool with effect
// replay runs once: the question counts as taken before the tool can do anything.
func (r *run) giveUp(ctx context.Context, d *desk, q *question) error {
	defer r.left(q, leftOpen)
	if r.tools.Err() == nil && r.effect == string(bindings.EffectReplay) {
		err := r.do(d, func(hold idempotency.Hold) error {
			return r.taken(hold, q)
		})
		if err != nil {
			return err
		}
	}
	return d.stopped(ctx)
}

// look reads what became of a question, and takes the reply if there is one. The read does not hold
// the gate: it may take as long as the server is away, and decides nothing.
func (r *run) look(ctx context.Context, d *desk, q *question) (reply idempotency.Reply, err error) {
	if err := r.closed(d); err != nil {
		return reply, err
	}
	r.looks(q)
	err = r.persist(func(lease context.Context) (err error) {
		lease, cancel := context.WithCancelCause(lease)
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		reply, err = r.h.Journal.Look(lease, r.held(), q.ID)
		return err
	})
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)): // the tool waits no longer
		return idempotency.Reply{}, r.giveUp(ctx, d, q)
	case err != nil:
		return reply, r.judge(err)
	case reply.Outcome == idempotency.Open:
		r.schedule(q)
		return reply, nil
	}
	return reply, r.do(d, func(hold idempotency.Hold) error { return r.take(hold, q, reply) })
}

// looks notes that a question is about to be read: whatever woke its wait is stored by now.
func (r *run) looks(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.called = false
}

// take stores that the tool is about to be handed a reply. The gate is held: a run that has
// parked takes nothing.
func (r *run) take(hold idempotency.Hold, q *question, reply idempotency.Reply) error {
	r.hit(failpoint.BeforeTaken)
	if err := r.taken(hold, q); err != nil {
		return err
	}
	r.hit(failpoint.AfterTaken)
	r.left(q, string(reply.Outcome))
	return nil
}

// taken stores that the answer of a question, or the end of the wait for one, is the tool's.
func (r *run) taken(hold idempotency.Hold, q *question) error {
	return r.judge(r.persist(func(ctx context.Context) error { return r.h.Journal.Take(ctx, hold, q.ID) }))
}

// schedule has the server end the time for an answer. Without that, the sweep ends the turn at
// the end of its life.
func (r *run) schedule(q *question) {
	if !r.unscheduled(q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.lives(), putTimeout)
	defer cancel()
	if err := r.h.Schedule(ctx, q.expire); err != nil {
		r.h.often(r.t.m, slog.LevelWarn, "the end of a question's time could not be scheduled; it is tried again", "", "chat", cut(r.t.Chat), "question", cut(q.callID), "err", err)
		return
	}
	q.scheduled.Store(true)
}

// unscheduled reports whether the server has yet to be told of the end of a question's time.
func (r *run) unscheduled(q *question) bool {
	return q.expire != nil && r.h.Schedule != nil && !q.scheduled.Load()
}

// listen notes a question before it is stored: its ack may come at once.
func (r *run) listen(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.waiting
	w.asked = true
	if w.open == nil {
		w.open = map[string]*question{}
	}
	w.open[q.token] = q
}

// opened notes that a question is on the screen and waits. With the first one the run begins to
// cost less: its slot is another's, and it will be parked.
func (r *run) opened(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.waiting
	if w.open[q.token] != q {
		return // the attempt was over meanwhile
	}
	q.open = true
	r.h.Metrics.Open.Inc()
	if w.count++; w.count == 1 {
		r.begin()
	}
}

// left notes that nobody here waits for a question any more, and why.
func (r *run) left(q *question, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting.open[q.token] == q {
		delete(r.waiting.open, q.token)
		r.leave(q, outcome)
	}
}

func (r *run) leave(q *question, outcome string) {
	close(q.over)
	w := &r.waiting
	switch {
	case outcome != leftOpen:
		w.told = false // it goes on, and may wait again
	case errors.Is(r.over, tools.ErrParked):
		outcome = leftParked
	}
	r.h.Metrics.Closed.WithLabelValues(outcome).Inc()
	if !q.open {
		return
	}
	r.h.Metrics.Open.Dec()
	if w.count--; w.count == 0 {
		r.rest()
	}
}

// abandon leaves all questions of an attempt or run that is over.
func (r *run) abandon() {
	for token, q := range r.waiting.open {
		delete(r.waiting.open, token)
		r.leave(q, leftOpen)
	}
}

// wake has a run look at a question, at all of them for "".
func (r *run) wake(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, q := range r.waiting.open {
		if token != "" && t != token {
			continue
		}
		q.called = true
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

// AckSeen has the run of a turn look at a question when the live copy of its ack arrives. The
// record is that of the ack.
func (h *Handlers) AckSeen(ack subjects.Record) {
	if r := h.running.find(ack.String()); r != nil && ack.ID != "" {
		r.wake(ack.ID)
	}
}

// LookAgain has all who wait for answers look: live copies may have been lost.
func (h *Handlers) LookAgain() {
	for _, r := range h.running.all() {
		r.wake("")
	}
}

// runComplete tells frontends that the run of a turn that asked people is over, for now or for
// good.
func (h *Handlers) runComplete(t *turn, status int, reason string) {
	event, err := events.Encode(events.KindRunComplete, &events.RunComplete{
		Kind: events.KindRunComplete, ID: t.callID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.callID, WorkflowName: t.Workflow, Status: status, Reason: reason,
	}, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(t.App, t.Chat, events.KindRunComplete), event)
	}
	if err != nil {
		h.Logger.Debug("run_complete could not be published", "chat", t.Chat, "turn", t.callID, "err", err)
	}
}
