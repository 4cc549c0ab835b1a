package handlers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/secrets"
)

// Deferred messages: a message that has to wait, and for which the budget of nacks has no place, is published again by
// a schedule of the server ([deferral.Message]), with its age, its deliveries and the turns it may hold. The first copy
// is acknowledged once the schedule is stored. How much a tenant may have deferred is [Config.DeferralQuota].

// longestDeferral is how long a message is deferred if its delay is not longer.
const longestDeferral = time.Hour

// deferMessage has the server publish a message again later, and acknowledges it when that is certain. If it is not,
// the message is redelivered. It reports false for a message that must not or cannot be deferred.
func (h *Handlers) deferMessage(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if h.Defer == nil {
		return inbound.NakAfter(delay), true
	}
	if !h.mayDefer(m) {
		return inbound.Acked(), false
	}
	return h.publishDeferred(m, delay)
}

// publishDeferred is [Handlers.deferMessage] of a message that the quota permits.
func (h *Handlers) publishDeferred(m *message, delay time.Duration) (inbound.Disposition, bool) {
	first := max(h.BindingGrace/3, time.Second)
	away := max(delay, min(first<<min(m.Deferrals, 12), longestDeferral))
	away += deferral.Spread(m.Lease.Seq, away/4) // many may have been deferred at the same time
	d, err := m.Pack(&m.Message, deferral.Packing{
		Space: h.Space, Keys: h.SecretKeys, At: h.serverNow(m).Add(away), Seal: m.secret, Must: m.asksSecret, Turns: m.turns,
	})
	if err == nil {
		ctx, cancel := context.WithTimeout(m.Held, jsapi.Timeout)
		defer cancel()
		err = h.Defer(ctx, d)
	}
	switch {
	case run.Unstorable(err), errors.Is(err, deferral.ErrUnsealed), jsapi.OutOfSpace(err):
		h.logThrottled(m, slog.LevelWarn, "message cannot be deferred", "", "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(err))
		return inbound.Disposition{}, false
	case err != nil:
		return h.redeliver(m, "it could not be deferred", err), true
	}
	// A later delivery may hold the turn by now. The deferred message is a duplicate then.
	done := h.ackUnlessLaterDelivery(m)
	if done.Do != inbound.Ack {
		return done, true
	}
	h.Metrics.Deferred.Inc()
	h.Logger.Debug("message deferred", "seq", m.Lease.Seq, "for", away.Round(time.Millisecond), "deferrals", m.Deferrals+1)
	return done, true
}

// mayDefer reports whether a message may be deferred within the quotas of its tenant and of all. A store that is nearly
// full changes nothing: a deferred message leaves the inbound stream. Two kinds are not limited: expiries, which workers
// alone send, one for each open question, which had a schedule before; and answers that were deferred before, whose
// room newer messages must not take.
func (h *Handlers) mayDefer(m *message) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	if h.DeferralQuota == nil || in.Kind == events.KindExpire || m.ByWorker && m.Deferrals > 0 {
		return true
	}
	room, err := h.DeferralQuota(m.Held, in.App, m.Bytes(&m.Message))
	if err != nil {
		h.logThrottled(m, slog.LevelWarn, "deferred messages cannot be counted: the last count decides", "", "err", err)
	}
	if !room {
		h.logThrottled(m, slog.LevelWarn, "too many messages are deferred: a message that should wait is decided immediately", "", "seq", m.Lease.Seq)
	}
	return room
}

// deferAgain defers a message that was deferred before without a read of its question, beyond the budget. A message that
// was not deferred before has to be read first: whether it is secret, and which turn it may hold.
func (h *Handlers) deferAgain(m *message, workflow string) (inbound.Disposition, bool) {
	if m.Deferrals == 0 || len(m.turns) == 0 || !h.awaitsWorkflow(m, workflow) {
		return inbound.Disposition{}, false
	}
	m.secret = m.Sealed // an open copy was found not to be secret when it was deferred
	return h.deferMessage(m, h.graceDelay(m))
}

// requeueSealed handles a sealed message that this worker cannot open. Another worker may have its key, as while
// keys are rotated, so it is requeued for as long as a turn may live.
func (h *Handlers) requeueSealed(m *message, err error) inbound.Disposition {
	age := h.age(m)
	if !m.ByWorker || !errors.Is(err, secrets.ErrUnknownKey) || h.MaxTurnLife > 0 && age >= h.MaxTurnLife {
		return h.deadUnreadable(m, err)
	}
	h.logThrottled(m, slog.LevelWarn, "a deferred answer waits for a worker with its key", "", "seq", m.Lease.Seq,
		"age", age.Round(time.Second), "err", events.LogText(err))
	if d, requeued := h.requeue(m, h.ageBasedDelay(m)); requeued {
		return d
	}
	d := h.ackUnlessLaterDelivery(m)
	if d.Do == inbound.Ack {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerUnknown)).Inc()
		h.sendResult(m, events.NewAnswerResult(events.AnswerUnknown, "", textNoRoom))
	}
	return d
}
