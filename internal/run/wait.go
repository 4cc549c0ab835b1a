package run

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
)

// A run that asks stores the question and then waits in memory: until the live copy of an ack wakes it, or until it
// reads the journal by itself, because live copies get lost. What it reads there decides. From the first open
// question on, it does not use its slot, and its turn is parked when nothing has happened for a while (park.go).

// Pauses between two reads of a question that no live copy has caused.
const (
	firstPoll = 5 * time.Second
	maxPoll   = time.Minute
)

// Outcomes of questions that end in this process without an answer, as counted by metrics.
const (
	outcomeLeft   = "left"   // the tool does not wait any longer, or its run is over
	outcomeParked = "parked" // a later run will get the answer
)

// openQuestions is the state of a run's questions. It is guarded by the mutex of the run.
type openQuestions struct {
	waiting   map[string]*question // by token
	displayed int                  // questions that are stored, and so displayed
	asked     bool                 // the run has come to a question

	reserved bool // it has a place among the runs that must not be parked
	askCalls int  // calls of ask that have not returned
}

// ask stores and displays a question, unless an earlier run has. A reply that is there already is taken.
func (r *Run) ask(h *host, q *question) (reply idempotency.Reply, err error) {
	if err := r.reserve(); err != nil {
		return reply, err
	}
	defer r.unreserve()
	r.listen(q)
	err = r.do(h, func(hold idempotency.Hold) error {
		r.hit(failpoint.BeforeAsk)
		err := r.classify(r.persist(func(ctx context.Context) (err error) {
			reply, err = r.cfg.Journal.Ask(ctx, hold, q.Question)
			return err
		}))
		if err != nil {
			return err
		}
		r.cfg.Metrics.Asked.Inc()
		if reply.Outcome != idempotency.Open {
			return r.take(hold, q, reply)
		}
		r.schedule(q)
		r.opened(q)
		r.hit(failpoint.AfterAsk)
		return nil
	})
	if err != nil {
		r.closeQuestion(q, outcomeLeft)
	}
	return reply, err
}

// awaitReply waits in memory until a question is decided or the run is over. A run that has lost its lease reads
// whether its turn has ended; one of an unsafe tool continues to wait if not.
func (r *Run) awaitReply(ctx context.Context, h *host, q *question) (idempotency.Reply, error) {
	pause := firstPoll
	next := pause + rand.N(2*pause) // many runs may have asked at the same time
	for {
		if r.cfg.Timing.Wait(ctx, r.leaseContext(), q.notify, q.over, next) {
			pause = min(2*pause, maxPoll)
		}
		switch {
		case closed(q.over):
			if err := h.stopped(r.tool); err != nil {
				return idempotency.Reply{}, err
			}
			return idempotency.Reply{}, errRunOver
		case ctx.Err() != nil:
			return idempotency.Reply{}, r.abandonQuestion(ctx, h, q)
		case r.leaseContext().Err() != nil:
			return idempotency.Reply{}, r.classify(context.Cause(r.leaseContext()))
		}
		reply, err := r.readReply(ctx, h, q)
		if err != nil || reply.Outcome != idempotency.Open {
			return reply, err
		}
		next = pause - rand.N(pause/2)
	}
}

// abandonQuestion ends a wait because the tool does not wait any longer, and returns the error that the tool
// continues with. What it does then is code after the question, which a tool with effect replay runs once: the
// question is stored as taken before the tool can do anything.
func (r *Run) abandonQuestion(ctx context.Context, h *host, q *question) error {
	defer r.closeQuestion(q, outcomeLeft)
	if r.tool.Err() == nil && r.effect == string(bindings.EffectReplay) {
		err := r.do(h, func(hold idempotency.Hold) error {
			return r.storeTaken(hold, q)
		})
		if err != nil {
			return err
		}
	}
	return h.stopped(ctx)
}

// readReply reads how a question was decided, and takes the reply if there is one. The read does not hold
// the gate: it may last as long as the server is away, and decides nothing.
func (r *Run) readReply(ctx context.Context, h *host, q *question) (reply idempotency.Reply, err error) {
	if err := r.refuses(h); err != nil {
		return reply, err
	}
	r.markRead(q)
	err = r.persist(func(lease context.Context) (err error) {
		lease, cancel := context.WithCancelCause(lease)
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		reply, err = r.cfg.Journal.ReadReply(lease, r.Hold(), q.ID)
		return err
	})
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)): // the tool does not wait any longer
		return idempotency.Reply{}, r.abandonQuestion(ctx, h, q)
	case err != nil:
		return reply, r.classify(err)
	case reply.Outcome == idempotency.Open:
		r.schedule(q)
		return reply, nil
	}
	return reply, r.do(h, func(hold idempotency.Hold) error { return r.take(hold, q, reply) })
}

// markRead notes that a question is about to be read: what has woken its wait is stored by now.
func (r *Run) markRead(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.notified = false
}

// take stores that the tool is about to receive a reply. The gate is held: a run that has parked takes nothing.
func (r *Run) take(hold idempotency.Hold, q *question, reply idempotency.Reply) error {
	r.hit(failpoint.BeforeTaken)
	if err := r.storeTaken(hold, q); err != nil {
		return err
	}
	r.hit(failpoint.AfterTaken)
	r.closeQuestion(q, string(reply.Outcome))
	return nil
}

// storeTaken stores that the tool receives the answer of a question, or does not wait for one any longer.
func (r *Run) storeTaken(hold idempotency.Hold, q *question) error {
	return r.classify(r.persist(func(ctx context.Context) error { return r.cfg.Journal.Take(ctx, hold, q.ID) }))
}

// schedule has the server end the time for an answer. If it cannot, the sweep ends the turn at the end of its life.
func (r *Run) schedule(q *question) {
	if !r.needsSchedule(q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.leaseContext(), jsapi.Timeout)
	defer cancel()
	if err := r.cfg.Schedule(ctx, q.expire); err != nil {
		r.reg.warn(r.t, "the timeout of a question could not be scheduled; it is retried", "chat", throttle.Cut(r.t.Chat), "question", throttle.Cut(q.callID), "err", err)
		return
	}
	q.scheduled.Store(true)
}

// needsSchedule reports whether a question has a timeout that the server does not know yet.
func (r *Run) needsSchedule(q *question) bool {
	return q.expire != nil && r.cfg.Schedule != nil && !q.scheduled.Load()
}

// listen registers a question before it is stored: its ack may come immediately.
func (r *Run) listen(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.questions
	w.asked = true
	if w.waiting == nil {
		w.waiting = map[string]*question{}
	}
	w.waiting[q.token] = q
}

// opened notes that a question is stored and waits. With the first one, the run releases its slot and will be parked.
func (r *Run) opened(q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.questions
	if w.waiting[q.token] != q {
		return // the attempt was over meanwhile
	}
	q.displayed = true
	r.cfg.Metrics.Open.Inc()
	if w.displayed++; w.displayed > 1 {
		return
	}
	if r.onQuestion != nil { // a step of a program: its runner decides
		r.onQuestion()
		return
	}
	r.isBusy(false)
}

// closeQuestion notes that nothing in this process waits for a question any more, and its outcome.
func (r *Run) closeQuestion(q *question, outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.questions.waiting[q.token] == q {
		delete(r.questions.waiting, q.token)
		r.noteClosed(q, outcome)
	}
}

func (r *Run) noteClosed(q *question, outcome string) {
	close(q.over)
	w := &r.questions
	switch {
	case outcome != outcomeLeft:
		r.waiting.announced = false // the tool continues, and may wait again
	case errors.Is(r.over, tools.ErrParked):
		outcome = outcomeParked
	}
	r.cfg.Metrics.Closed.WithLabelValues(outcome).Inc()
	if !q.displayed {
		return
	}
	r.cfg.Metrics.Open.Dec()
	if w.displayed--; w.displayed == 0 {
		r.isBusy(true)
		r.freePlace()
	}
}

// abandonQuestions closes all questions of an attempt or run that is over. The mutex is held.
func (r *Run) abandonQuestions() {
	for token, q := range r.questions.waiting {
		delete(r.questions.waiting, token)
		r.noteClosed(q, outcomeLeft)
	}
}

// notifyAll has all runs of the turn read their questions.
func (s *shared) notifyAll() {
	s.mu.Lock()
	calls := slices.Clone(s.calls)
	s.mu.Unlock()
	for _, r := range calls {
		r.notify("")
	}
}

// notify has a run read a question, all of them for "".
func (r *Run) notify(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, q := range r.questions.waiting {
		if token != "" && t != token {
			continue
		}
		q.notified = true
		select {
		case q.notify <- struct{}{}:
		default:
		}
	}
}
