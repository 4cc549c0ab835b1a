package timers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/throttle"
)

// This file routes the messages that schedules deliver (Handle), and runs the sweep: one message for all workers, which
// each sweep schedules again (schedule) when it ends.

// Timers handles what schedules deliver. There is one message for sweeps: the worker that receives it sweeps, so that
// one worker does at a time, continues from what the last one has left in Pages, and schedules it again. The end of
// the time to answer a question is passed to the workers of its pool, any number at a time. All exported fields are
// required.
type Timers struct {
	Sweep   *sweep.Sweep
	Pages   sweep.Pages
	Dead    deadletter.Store
	Metrics *metrics.Metrics
	Sweeps  *metrics.Sweep
	// Interval is from the end of one sweep to the next. A worker with less than 0 never sweeps.
	Interval time.Duration

	lines throttle.Lines
}

// sweepBody is what a sweep that is due holds. Workers of an older version take it for the state of a
// sweep of the whole journal; nothing else reads it.
const sweepBody = `{"from":0}`

// Ensure schedules a sweep unless one is scheduled. A running sweep
// replaces that schedule by its own.
func (t *Timers) Ensure(ctx context.Context) error {
	err := t.schedule(ctx, true)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return nil
	}
	return err
}

// schedule sets when the next sweep is due, by the server's clock.
func (t *Timers) schedule(ctx context.Context, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	s := t.Sweep
	now, err := jsapi.ServerTime(ctx, s.JS, s.Space.TimersStream())
	if err != nil {
		return fmt.Errorf("schedule the next sweep: %w", err)
	}
	m := jsapi.Scheduled(s.Space.SweepTimer(), s.Space.SweepDue(), now.Add(t.Interval), []byte(sweepBody))
	if first {
		m.Header.Set(nats.ExpectedLastSubjSeqHdr, "0")
	}
	if _, err := s.JS.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("schedule the next sweep: %w", err)
	}
	return nil
}

// Handle handles one message that is due. ctx ends when the worker stops.
// After a panic the message is redelivered.
func (t *Timers) Handle(ctx context.Context, m *inbound.Message) (d inbound.Disposition) {
	s := t.Sweep
	defer func() {
		if p := recover(); p != nil {
			t.Metrics.Panics.Inc()
			t.logThrottled(m, slog.LevelError, "a handler panicked; the message will be redelivered", "", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d = inbound.Left()
		}
	}()
	key, ask, question := s.Space.ParseAskDue(m.Subject)
	again, deferred := s.Space.ParseDeferralDue(m.Subject)
	switch {
	case deferred:
		return t.again(ctx, m, again)
	case question:
		return t.expire(ctx, m, key, ask)
	case m.Subject != s.Space.SweepDue():
		return t.dead(m, deadletter.ReasonUnknownKind, fmt.Errorf("nothing is due on subject %.300q", m.Subject))
	case t.Interval < 0:
		return inbound.NakAfter(backoff(m, firstRetry))
	}
	return t.runSweep(ctx, m)
}

// runSweep does a sweep that is due, and schedules the next.
func (t *Timers) runSweep(ctx context.Context, m *inbound.Message) inbound.Disposition {
	s := t.Sweep
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.Held, func() { cancel(context.Cause(m.Held)) })()
	err := t.sweep(ctx, m)
	switch {
	case errors.Is(err, errOtherSweep):
		return inbound.Acked()
	case m.Held.Err() != nil:
		return inbound.Left() // another worker owns the message now
	case ctx.Err() != nil:
		return inbound.NakAfter(0) // another worker continues from the same state
	case err != nil:
		s.Logger.Warn("the sweep failed; it is retried", "err", err)
		return inbound.NakAfter(max(s.AckWait, t.Interval/5))
	}
	if err := t.schedule(ctx, false); err != nil {
		s.Logger.Warn("the next sweep could not be scheduled; this one is repeated", "err", err)
		return inbound.NakAfter(s.AckWait)
	}
	return inbound.Acked()
}

// errOtherSweep is the error of a sweep while another one is due or running.
var errOtherSweep = errors.New("another sweep is running")

func (t *Timers) sweep(ctx context.Context, m *inbound.Message) error {
	s := t.Sweep
	start := time.Now()
	first, err := jsapi.Read(ctx, s.JS.Conn(), s.Space.TimersStream(), jsapi.Get{Seq: 1, Next: s.Space.SweepDue()})
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	if first == nil || first.Seq != m.Lease.Seq { // an older one is running, or this one is settled already
		return errOtherSweep
	}
	swept, err := s.Run(ctx, t.Pages, m.Stored, sweep.Scope{}, func(ctx context.Context, f sweep.Finding) (uint64, error) {
		seq, err := s.Resume(ctx, f)
		if err != nil {
			return 0, err
		}
		t.Sweeps.Resumes.WithLabelValues(string(f.Condition)).Inc()
		s.Logger.Warn("a turn without a message is resumed", "key", f.Key.String(), "condition", string(f.Condition),
			"age", f.Age.Round(time.Second), "seq", seq)
		return seq, nil
	})
	if err != nil {
		return err
	}
	t.Sweeps.Observe(swept.Open, swept.Failed, swept.Oldest, time.Since(start))
	s.Logger.Debug("swept", "headers", swept.Headers, "open", swept.Open, "checked", swept.Checked, "oldest", swept.Oldest.Round(time.Second),
		"resumed", swept.Resumed, "erased", swept.Erased, "failed", swept.Failed, "ms", time.Since(start).Milliseconds())
	return nil
}

func (t *Timers) dead(m *inbound.Message, reason string, cause error) inbound.Disposition {
	if err := t.Dead.Put(m.Held, m, reason, cause); err != nil {
		t.logThrottled(m, slog.LevelError, "a dead letter could not be stored; the message will be redelivered", reason, "reason", reason, "seq", m.Lease.Seq, "err", err)
		return inbound.Left()
	}
	t.Metrics.Dead.WithLabelValues(reason).Inc()
	t.logThrottled(m, slog.LevelWarn, "dead letter", reason, "reason", reason, "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(cause))
	return inbound.Acked()
}
