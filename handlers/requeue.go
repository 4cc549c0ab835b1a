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
	"github.com/oneturn/oneturn/subjects"
)

// Messages that have to wait: for a worker that knows their workflow, for the record of their question, or for room in
// the store. [Handlers.requeue] is the one way to make a message wait, with a negative acknowledgement (nak) or a
// deferral; the other functions choose the delay, or what happens when neither is possible.
//
// A message that is nacked with a delay keeps its place among the messages that the workers of a pool may hold together
// (MaxAckPending of the consumer), and a pool without a free place receives nothing more, from any tenant. So a
// process nacks as many as its [budget.Budget] has places for. The rest is deferred (see below): a schedule of
// the server publishes them again, and they take no place until then.

// longestNak is how long a message may keep its place. One that has to wait longer is deferred.
const longestNak = time.Minute

// Bounds of how often a message is offered to workers that may know its workflow.
const (
	// quickDeliveries is how often a deferred message is redelivered without a noticeable delay before it is deferred
	// again, or decided without the workflow.
	quickDeliveries = 4
	// graceDeferrals is how often it is deferred at most before it is decided: often enough that one of several workers
	// that knows its workflow gets it, although an overloaded pool delivers it once each time.
	graceDeferrals = 4
)

// requeue has a message delivered again after a delay, to any worker of its pool. It keeps its place until then if the
// budget has one, else it is deferred, for longer. It reports false if neither is possible: then the caller decides the
// message, so that nothing that a tenant can send takes places without bound.
func (h *Handlers) requeue(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if d, kept := h.nakWithinBudget(m, delay); kept {
		return d, true
	}
	return h.deferMessage(m, delay)
}

// bytesPerPlace is how much data a place of the budget is for. A message that keeps its place stays in the inbound
// stream, which is bounded for all, so larger messages take more of them.
const bytesPerPlace = 64 << 10

// nakWithinBudget nacks a message if the budget has a place for it for as long. A tenant that overuses its share gets
// none for a message that was deferred before: deferred again at its first delivery, it costs no read of the lease of its turn.
func (h *Handlers) nakWithinBudget(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if delay > longestNak {
		return inbound.Disposition{}, false
	}
	app, _ := h.Space.InSender(m.Subject)
	now, again := h.Now(), m.Deferrals > 0 && m.Lease.Delivery == 1
	if again && h.waiting.Overused(app, now) || !h.waiting.TakeFor(app, 1+len(m.Data)/bytesPerPlace, now, delay) {
		return inbound.Disposition{}, false
	}
	return inbound.NakAfter(delay), true
}

// requeueAlways requeues a message of which there are few: an expiry, which workers alone send, one for each open
// question, or the lease of a claimed turn, which had a place while it ran. If it cannot be deferred it keeps its place for
// a minute.
func (h *Handlers) requeueAlways(m *message, delay time.Duration) inbound.Disposition {
	if d, requeued := h.requeue(m, delay); requeued {
		return d
	}
	return inbound.NakAfter(longestNak)
}

// requeueLease requeues a message of a claimed turn that only a worker that knows its workflow can continue. While its
// lease is in the stream no sweep has to resume the turn, so it is nacked again and again while there is a place, each
// time for a minute at most: a process knows only its own budget, and the messages that an earlier process nacked still
// take places. Beyond the budget a resume, and any message that is not the lease and cannot be deferred, is
// acknowledged: the journal has the turn, and the next sweep publishes another resume.
func (h *Handlers) requeueLease(m *message, isLease bool) inbound.Disposition {
	delay := h.leaseDelay(m)
	if d, kept := h.nakWithinBudget(m, min(delay, longestNak)); kept {
		return d
	}
	_, kind := h.Space.InSender(m.Subject)
	if kind != events.KindResume || h.Defer == nil {
		if isLease {
			return h.requeueAlways(m, delay)
		}
		if d, deferred := h.deferMessage(m, delay); deferred {
			return d
		}
	}
	h.logThrottled(m, slog.LevelWarn, "a turn of an unknown workflow is left to the next sweep", "", "seq", m.Lease.Seq)
	return h.ackUnlessLaterDelivery(m)
}

// leaseDelay is the delay of a message of a claimed turn whose workflow is unknown here: short at first, because workers
// of several workflows may share the pool, then longer with its age.
func (h *Handlers) leaseDelay(m *message) time.Duration {
	if m.deliveries() <= graceNaks && m.Deferrals == 0 {
		return h.graceDelay(m)
	}
	return h.ageBasedDelay(m)
}

// graceDelay is the delay of a message of an unknown workflow within the binding grace: shortest at first, because workers
// of other workflows may share the pool, then doubled up to a part of the grace, so that the message is delivered a few
// dozen times, however long the grace is.
func (h *Handlers) graceDelay(m *message) time.Duration {
	if m.recentlyDeferred() {
		return shortestDelay
	}
	longest := max(h.BindingGrace/(graceNaks-10), time.Millisecond)
	return min(shortestDelay<<min(max(m.deliveries(), 1)-1, 30), longest)
}

// shortestDelay is the first delay of a message that another worker may be able to handle.
const shortestDelay = 5 * time.Millisecond

// recentlyDeferred reports whether a deferred message was published again and has had few deliveries since.
func (m *message) recentlyDeferred() bool {
	return m.Deferrals > 0 && m.Lease.Delivery < quickDeliveries
}

// ageBasedDelay is the delay of a message that has to wait for a worker that knows its workflow for as long
// as its turn may live: a part of its age, so that it is delivered a few dozen times in a week.
func (h *Handlers) ageBasedDelay(m *message) time.Duration {
	if m.recentlyDeferred() {
		return shortestDelay
	}
	const part, least = 4, time.Second
	return max(h.age(m)/part, least)
}

// age is how long ago the inbound stream took a message first, by the server's clock.
func (h *Handlers) age(m *message) time.Duration { return h.serverNow(m).Sub(m.Stored) }

// serverNow is the time by the server's clock.
func (h *Handlers) serverNow(m *message) time.Time {
	return m.clock.Now(h.Now())
}

// aloneGrace is the grace if no other worker is connected: as long as it takes to load a folder
// that was just saved.
const aloneGrace = 2 * time.Second

// grace is how long an unclaimed turn of an unknown workflow waits for a worker that knows it.
func (h *Handlers) grace() time.Duration {
	if h.BindingGrace > aloneGrace && h.Alone != nil && h.Alone() {
		return aloneGrace
	}
	return h.BindingGrace
}

// inGrace reports whether a message of an unknown workflow is still offered to other workers: for the binding grace,
// and after a deferral that took longer a few times more.
func (h *Handlers) inGrace(m *message) bool {
	return h.age(m) < h.grace() || m.recentlyDeferred() && m.Deferrals < graceDeferrals
}

// requeueUnread nacks a redelivered message of an unknown workflow within the binding grace before it is decoded. It
// reports false if the budget has no place, and for kinds of messages that no binding decides.
func (h *Handlers) requeueUnread(m *message, in subjects.Inbound) (inbound.Disposition, bool) {
	switch turn := events.TurnKind(in.Kind); {
	case !h.awaitsWorkflow(m, in.Workflow), !turn && !events.AnswerKind(in.Kind) && in.Kind != events.KindExpire,
		turn && h.age(m) > h.MaxEventAge:
		return inbound.Disposition{}, false
	}
	return h.nakWithinBudget(m, h.graceDelay(m))
}

// awaitsWorkflow reports whether a redelivered message waits for a worker that knows its workflow, a token.
func (h *Handlers) awaitsWorkflow(m *message, workflow string) bool {
	return m.deliveries() > 1 && !h.knowsWorkflow(workflow) && h.inGrace(m)
}

// requeueUnknownWorkflow requeues a message of a workflow, a token, that is unknown here: another worker may know it,
// while this one could only end its turn. It does so within the binding grace, and for an open question, q, until the
// life of its turn is over, so that a deploy without the workflow does not cost an answer. Nil is a question that is
// not known. Refused reports that the message of an open question has to wait and cannot be requeued.
func (h *Handlers) requeueUnknownWorkflow(m *message, workflow string, q *storedQuestion) (d inbound.Disposition, requeued, refused bool) {
	if h.knowsWorkflow(workflow) {
		return inbound.Disposition{}, false, false
	}
	delay := h.graceDelay(m)
	if !h.inGrace(m) {
		age := h.age(m)
		if q == nil || h.MaxTurnLife > 0 && age >= h.MaxTurnLife || h.hasEnded(m, q.key) {
			return inbound.Disposition{}, false, false
		}
		h.logThrottled(m, slog.LevelWarn, "no worker has the workflow of an open question: start one that has it, and send the answer again if it was refused", "",
			"workflow", q.WorkflowName, "chat", q.ChatID, "question", q.ToolCallID, "seq", m.Lease.Seq, "age", age.Round(time.Second))
		delay = h.ageBasedDelay(m)
	}
	d, requeued = h.requeue(m, delay)
	return d, requeued, !requeued && q != nil
}

// hasEnded reports whether a turn has its response; false if that cannot be read.
func (h *Handlers) hasEnded(m *message, key subjects.Key) bool {
	ended, err := h.Journal.Ended(m.Held, key)
	return err == nil && ended
}

func (h *Handlers) knowsWorkflow(workflow string) bool {
	set := h.Bindings()
	if name, hashed, err := subjects.Untoken(workflow); err == nil && !hashed {
		return set.WorkflowDigest(name) != ""
	}
	for _, name := range set.Workflows() {
		if subjects.Token(name) == workflow {
			return true
		}
	}
	return false
}

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
		Space: h.Space, Keys: h.SecretKeys, At: h.serverNow(m).Add(away), Seal: m.secret, Must: m.asksSecret, Turns: m.mayHold,
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
	m.unfinished = true
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
	if m.Deferrals == 0 || len(m.mayHold) == 0 || !h.awaitsWorkflow(m, workflow) {
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
