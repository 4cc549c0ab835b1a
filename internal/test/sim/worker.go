package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
)

// A process is a worker: the real handlers, journal and inbox on the simulated world. It can be killed, paused, cut
// off, drained and restarted with other manifests.

// process is one worker. It runs until it is killed or has drained, and then starts again
// with an empty memory.
type process struct {
	w        *world
	name     string
	pool     string
	in       inbox.Steps
	sent     []sent           // that have not arrived
	pulls    []pulled         // at the queue
	waits    [2]time.Duration // the last two ack waits that it has read
	nextBeat time.Time        // when heartbeats are due
	nextRead time.Time        // when the ack wait is read again
	life     int
	manifest manifest
	had      []manifest    // all so far
	skew     time.Duration // how wrong its clock is
	handlers *handlers.Handlers
	journal  *idempotency.Journal
	threads  []*thread
	given    []time.Time // until when messages that it requeued keep their places
	fibers   []*fiber    // that belong to no delivery

	ctx  context.Context //nolint:containedctx // the life of the process
	stop context.CancelCauseFunc

	up, paused, draining, cut bool          // cut: from the queue
	filled                    time.Time     // when it last saw that the store was nearly full
	unsure                    time.Duration // how wrong it may know the time of the server: as long as an answer took
	late                      bool          // it has stood still, and sent no heartbeats since
}

// start starts the worker with the real handlers on the simulated world.
func (p *process) start(m manifest) {
	w := p.w
	p.life++
	p.manifest, p.up, p.paused, p.draining, p.late, p.cut = m, true, false, false, false, false
	p.had, p.given, p.filled, p.unsure = append(p.had, m), nil, time.Time{}, 0
	p.skew = time.Duration(w.rng.IntN(20)-10) * time.Hour
	p.in = inbox.NewSteps(link{p}, func() int { return len(p.sent) }, w.since, inbox.Options{Stream: stream, Consumer: consumer, Slots: slots, AckWait: w.ackWait})
	p.waits = [2]time.Duration{w.ackWait, w.ackWait}
	p.sent, p.pulls, p.nextBeat, p.nextRead = nil, nil, w.now, w.now.Add(reread)
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.journal = idempotency.New(w.store, p.name, idempotency.Options{Pause: w.pause, Pool: p.pool})
	vars := variables.NewIn(w.documents)
	vars.Journal, vars.Retries.Pause = p.journal, func(ctx context.Context) error { return w.pause(ctx, 0) }
	p.handlers = handlers.New(handlers.Config{
		Config: run.Config{
			Space:      w.sim.space,
			Journal:    p.journal,
			Bindings:   func() *bindings.Set { return p.manifest.set },
			Blobs:      blobs{},
			Live:       w.live,
			Metrics:    w.sim.metrics,
			Logger:     slog.New(panics{slog.DiscardHandler, w}),
			Now:        func() time.Time { return w.now.Add(p.skew) },
			ServerTime: p.serverTime,
			Schedule:   w.scheduleExpiry,
			Timing:     timing{w},
		},
		Engine:        engine.New(engine.Options{Timeout: 24 * time.Hour, Grace: 24 * time.Hour}),
		Tool:          func(*bindings.Binding) (tools.Invoker, error) { return tool{w}, nil },
		Variables:     vars,
		LeaseHeld:     w.leaseHeld,
		Full:          p.isFull,
		Dead:          letters{w},
		Defer:         w.deferMessage,
		DeferralQuota: w.deferralQuota,
		BindingGrace:  bindingGrace,
		MaxEventAge:   maxEventAge,
		MaxAckPending: placesOfPool,
	})
	w.tracef("%s begins, manifests: %s, clock %s", p.name, m.name, p.skew)
}

// panics is a log handler that looks for panics, which the handlers survive.
type panics struct {
	slog.Handler

	w *world
}

// Enabled implements [slog.Handler].
func (panics) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle implements [slog.Handler].
func (h panics) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "panic" {
			h.w.violatef("a handler panicked: %s", a.Value)
		}
		return true
	})
	return nil
}

// isFull reports whether the store is nearly full, and when it last was, by the clock of the process.
func (p *process) isFull() (now bool, last time.Time) {
	if p.w.full {
		p.filled = p.w.now.Add(p.skew)
	}
	return p.w.full, p.filled
}

// leaseHeld reports whether the message of a lease is still in the stream.
func (w *world) leaseHeld(ctx context.Context, l idempotency.Lease) (bool, error) {
	if err := w.store.read(ctx, "is "+l.String()+" held"); err != nil {
		return false, err
	}
	return !w.queue[l.Seq-1].settled, nil
}

// serverTime is the clock of the server.
func (p *process) serverTime(ctx context.Context) (time.Time, error) {
	asked := p.w.now
	if err := p.w.store.read(ctx, "what time is it"); err != nil {
		return time.Time{}, err
	}
	p.unsure = max(p.unsure, p.w.now.Sub(asked))
	return p.w.now, nil
}

// scheduleExpiry has the server end the time for an answer.
func (w *world) scheduleExpiry(ctx context.Context, e *events.Expire) error {
	w.yield("schedule")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.scheduled(e)
	if w.strike(LostSchedule, 3) {
		return errNoAnswer
	}
	return nil
}

// live notes what workers publish without the journal: the results of answers.
func (w *world) live(subject string, data []byte) error {
	seq, ok := strings.CutPrefix(subject, replyPrefix)
	if !ok {
		return nil
	}
	v, err := events.DecodeAnswerResult(data)
	if err != nil {
		return fmt.Errorf("simulated: %w", err)
	}
	n, err := strconv.Atoi(seq)
	if err != nil {
		return fmt.Errorf("simulated: %w", err)
	}
	w.note(w.queue[n-1], v)
	return nil
}

// handle is what the worker does with a delivery.
func (p *process) handle(t *thread, x *fiber) {
	m, w := t.m, t.w
	d := p.handlers.Handle(p.ctx, &inbound.Message{
		Subject: m.subject, Header: m.header, Data: m.body, Stored: t.d.Stored,
		Lease: t.lease, Held: t.d.Held(), Fresh: t.d.Fresh, AckWait: t.d.AckWait, Refresh: t.d.Refresh, Slot: t,
	})
	switch d.Do {
	case inbound.Ack, inbound.Erase:
		t.known = len(w.store.log)
		x.flight = func() { m.ack(t, t.known) }
		x.yield("ack")
		t.d.Ack()
	case inbound.Nak:
		if d.Delay > 0 {
			p.places(t, d.Delay)
		}
		x.yield("nak")
		t.d.Nak(d.Delay)
	case inbound.Leave:
		w.tracef("%s leaves #%d/%d", p.name, t.lease.Seq, t.lease.Delivery)
		t.d.Leave()
		w.checkLeft(t)
	}
}

// pause is how the journal waits.
func (w *world) pause(ctx context.Context, _ time.Duration) error {
	w.yield("wait")
	if _, last := ctx.Deadline(); last && w.chance(1, 4) {
		return context.DeadlineExceeded
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// step lets a fiber of this process continue.
func (p *process) step(x *fiber) {
	t := x.t
	if t == nil {
		p.w.tracef("%s %s", p.name, x.at)
		x.resume(true)
		p.fibers = slices.DeleteFunc(p.fibers, func(other *fiber) bool { return other.over })
		return
	}
	p.w.tracef("%s #%d/%d %s", p.name, t.lease.Seq, t.lease.Delivery, x.at)
	x.resume(true)
	if t.over() {
		t.kill() // a timer that came too late
		p.forget(t)
		return
	}
	t.tidy()
}

// busy is how many slots are taken.
func (p *process) busy() (n int) {
	for _, t := range p.threads {
		if t.begun && !t.slotReleased {
			n++
		}
	}
	return n
}

// drain has the worker take no more messages and come to an end.
func (p *process) drain() {
	p.w.tracef("%s drains", p.name)
	p.draining = true
	p.handlers.Drain()
	p.in.Drain()
	for _, t := range slices.Backward(p.threads) {
		switch {
		case t.begun:
		case !t.settled && t.m.holder == t && !t.late && p.w.now.Sub(t.beat) <= min(p.waits[0], p.waits[1]):
			p.w.violatef("%s: %s drains and keeps #%d, which it has not begun", t.m.turn.id.Turn, p.name, t.m.seq)
		default:
			p.forget(t)
		}
	}
}

func (p *process) forget(t *thread) {
	t.d.Leave() // does nothing to one that is settled
	if t.m.holder == t {
		t.m.holder = nil
	}
	p.threads = slices.DeleteFunc(p.threads, func(other *thread) bool { return other == t })
}

// hitAll notes that all deliveries in the worker's hands have met a fault.
func (p *process) hitAll() {
	for _, t := range p.threads {
		p.w.hit(t.lease)
	}
}

// pause stops all threads where they are.
func (p *process) pause() {
	p.w.tracef("%s stands still", p.name)
	p.paused, p.late = true, true
}

// crash kills the worker. What it was sending may still arrive.
func (p *process) crash() {
	p.w.tracef("%s is killed", p.name)
	p.hitAll()
	for _, t := range p.threads {
		for _, x := range t.fibers {
			if x.flight != nil && p.w.chance(1, 2) {
				p.w.flying = append(p.w.flying, x.flight)
			}
		}
	}
	p.end()
}

// softStop ends the context of the tools of a worker that drains.
func (p *process) softStop() {
	p.w.tracef("%s stops its tools", p.name)
	p.hitAll()
	p.stop(handlers.ErrDraining)
}

// end ends all threads and the process.
func (p *process) end() {
	for len(p.threads) > 0 {
		t := p.threads[0]
		t.kill()
		p.forget(t)
	}
	p.stop(nil) // a killed sweep reads nothing more
	for _, x := range p.fibers {
		x.kill()
	}
	p.fibers, p.sent = nil, nil
	p.up = false
}
