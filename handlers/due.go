package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
)

// Timers handles what schedules deliver. Of sweeps one message goes round, from schedule to
// worker and back, and carries the state of the sweep. Whoever gets it sweeps, so that one worker
// does at a time. Ends of the time to answer a question go on to the workers of its pool, any
// number at a time. All fields are required.
type Timers struct {
	Sweep   *Sweep
	Dead    Letters
	Metrics *Metrics
	Sweeps  *SweepMetrics
	// Interval is from the end of one sweep to the next. A worker with less than 0 sweeps
	// nothing, and leaves that to others.
	Interval time.Duration
}

// Ensure schedules a sweep of the whole journal unless one is scheduled. A sweep that is
// being done replaces the schedule by its own.
func (t *Timers) Ensure(ctx context.Context) error {
	err := t.schedule(ctx, SweepState{}, true)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil
	}
	return err
}

// schedule sets when the next sweep is due, by the server's clock.
func (t *Timers) schedule(ctx context.Context, next SweepState, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	s := t.Sweep
	now, err := ServerTime(ctx, s.JS, s.Space.TimersStream())
	if err != nil {
		return fmt.Errorf("schedule the next sweep: %w", err)
	}
	m := scheduled(s.Space.SweepTimer(), s.Space.SweepDue(), now.Add(t.Interval), next.Encode())
	if first {
		m.Header.Set(nats.ExpectedLastSubjSeqHdr, "0")
	}
	if _, err := s.JS.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("schedule the next sweep: %w", err)
	}
	return nil
}

// ServerTime is the time by the clock of the server that leads a stream: ages of records are
// never told by a clock of our own.
func ServerTime(ctx context.Context, js jetstream.JetStream, stream string) (time.Time, error) {
	handle, err := js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, fmt.Errorf("stream %s: %w", stream, err)
	}
	return handle.CachedInfo().TimeStamp, nil
}

// Handle deals with one message that is due. ctx ends when the worker stops.
// A panic leaves the message to come back.
func (t *Timers) Handle(ctx context.Context, m *Message) (d Disposition) {
	s := t.Sweep
	defer func() {
		if p := recover(); p != nil {
			t.Metrics.Panics.Inc()
			s.Logger.Error("a handler panicked; the message comes back", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d = leave()
		}
	}()
	key, ask, question := s.Space.ParseAskDue(m.Subject)
	again, deferred := s.Space.ParseInDue(m.Subject)
	switch {
	case deferred:
		return t.again(ctx, m, again)
	case question:
		return t.expire(ctx, m, key, ask)
	case m.Subject != s.Space.SweepDue():
		return t.dead(m, reasonUnknownKind, fmt.Errorf("nothing is due on subject %.300q", m.Subject))
	case t.Interval < 0:
		return nakAfter(growing(m, notMine))
	}
	return t.sweepDue(ctx, m)
}

// sweepDue does a sweep that is due, and schedules the next.
func (t *Timers) sweepDue(ctx context.Context, m *Message) Disposition {
	s := t.Sweep
	state, err := DecodeSweepState(m.Data)
	if err != nil {
		return t.dead(m, reasonUndecodable, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.Held, func() { cancel(context.Cause(m.Held)) })()
	swept, err := t.sweep(ctx, m, state)
	switch {
	case errors.Is(err, errOtherSweep):
		return ack()
	case m.Held.Err() != nil:
		return leave() // it is somebody else's now
	case ctx.Err() != nil:
		return nakAfter(0) // another worker goes on from the same state
	case err != nil:
		s.Logger.Warn("the sweep failed; it is tried again", "err", err)
		return nakAfter(max(s.AckWait, t.Interval/5))
	}
	if err := t.schedule(ctx, swept.Next, false); err != nil {
		s.Logger.Warn("the sweep is repeated", "err", err)
		return nakAfter(s.AckWait)
	}
	return ack()
}

// errOtherSweep says that another sweep is due or being done.
var errOtherSweep = errors.New("another sweep is being done")

func (t *Timers) sweep(ctx context.Context, m *Message, state SweepState) (Swept, error) {
	s := t.Sweep
	start := time.Now()
	first, err := leaderRead(ctx, s.JS.Conn(), s.Space.TimersStream(), fmt.Sprintf(`{"seq":1,"next_by_subj":%q}`, s.Space.SweepDue()))
	if err != nil && !errors.Is(err, idempotency.ErrNotFound) {
		return Swept{}, err
	}
	if first != m.Lease.Seq { // an older one carries the state on; or this one is settled already
		return Swept{}, errOtherSweep
	}
	swept, err := s.Run(ctx, state, m.Stored, Scope{}, func(ctx context.Context, f Finding) error {
		seq, err := s.Resume(ctx, f)
		if err != nil {
			return err
		}
		t.Sweeps.Resumes.WithLabelValues(string(f.Condition)).Inc()
		s.Logger.Warn("a turn without a message is resumed", "key", f.Key.String(), "condition", string(f.Condition),
			"age", f.Age.Round(time.Second), "seq", seq)
		return nil
	})
	if err != nil {
		return swept, err
	}
	t.Sweeps.note(swept, time.Since(start))
	s.Logger.Debug("swept", "headers", swept.Headers, "open", swept.Open, "oldest", swept.Oldest.Round(time.Second),
		"resumed", swept.Mended, "erased", swept.Erased, "failed", swept.Failed, "from", state.From, "next", swept.Next.From, "ms", time.Since(start).Milliseconds())
	return swept, nil
}

func (t *Timers) dead(m *Message, reason string, cause error) Disposition {
	if err := t.Dead.Put(m.Held, m, "", reason, cause); err != nil {
		t.Sweep.Logger.Error("a dead letter could not be stored; the message comes back", "reason", reason, "seq", m.Lease.Seq, "err", err)
		return leave()
	}
	t.Metrics.Dead.WithLabelValues(reason).Inc()
	t.Sweep.Logger.Warn("dead letter", "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", logError(cause))
	return ack()
}
