package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// A message that is given back with a delay keeps its place among those that the workers of a pool
// may hold together (MaxAckPending of the consumer), and a pool that has no place left takes nothing
// more, from no tenant. So a process gives back as many as its [budget.Budget] has places for. Others are put
// aside: a schedule publishes them again, and they take no place until then.

// longestPlace is how long a message may keep its place. One that has to wait longer is put aside.
const longestPlace = time.Minute

// Bounds of what is put aside.
const (
	// quickOffers is how often a message that comes again is offered to workers that may know its
	// workflow before it is put aside again, or judged without the workflow.
	quickOffers = 4
	// graceDeferrals is how often it is put aside at most before it is judged: often enough that one of several
	// workers that knows its workflow gets it, although it is offered once each time in a crowd.
	graceDeferrals = 4
	// longestAside is how long a message is put aside if nothing wants it to wait longer.
	longestAside = time.Hour
)

// giveBack has a message delivered again after a delay, to any worker of its pool. It keeps its place until then if the
// budget has one, else it is put aside, for longer. It reports false if neither can be: then the caller decides the
// message, so that nothing that a tenant can send takes places without bound.
func (h *Handlers) giveBack(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if d, kept := h.keepPlace(m, delay); kept {
		return d, true
	}
	return h.putAside(m, delay)
}

// bytesOfPlace is how much data a place of the budget is for. What keeps its place stays in the inbound stream,
// which is bounded for all, so larger messages take more of them.
const bytesOfPlace = 64 << 10

// keepPlace gives a message back that keeps its place, if the budget has one for as long. In a crowd one that has come
// again does not take one: put aside at its first delivery, it costs no look who holds its turn.
func (h *Handlers) keepPlace(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if delay > longestPlace {
		return inbound.Disposition{}, false
	}
	app, _ := h.Space.InSender(m.Subject)
	now, again := h.Now(), m.Deferrals > 0 && m.Lease.Delivery == 1
	if again && h.givenBack.Overused(app, now) || !h.givenBack.TakeFor(app, 1+len(m.Data)/bytesOfPlace, now, delay) {
		return inbound.Disposition{}, false
	}
	return inbound.NakAfter(delay), true
}

// keepPlaceUnbudgeted is giveBack of a message of which there are few: an expiry, which workers alone send, one for
// each open question, or the lease of a claimed turn, which had a place while it ran. If it cannot be
// put aside it keeps its place for a minute.
func (h *Handlers) keepPlaceUnbudgeted(m *message, delay time.Duration) inbound.Disposition {
	if d, back := h.giveBack(m, delay); back {
		return d
	}
	return inbound.NakAfter(longestPlace)
}

// giveLeaseBack gives a message back whose turn only a worker that knows its workflow can continue. While its lease
// is in the stream no sweep has to look after the turn, so it is offered again and again while there is a place, each
// time for a minute at most: the budget is that of a process, and what the one before it gave back holds
// places that it does not know of. Beyond the budget a resume, and any message that is not the lease and cannot be
// put aside, is acknowledged: the journal has the turn, and the next sweep publishes another resume.
func (h *Handlers) giveLeaseBack(m *message, isLease bool) inbound.Disposition {
	delay := h.whileTurnLives(m)
	if d, kept := h.keepPlace(m, min(delay, longestPlace)); kept {
		return d
	}
	_, kind := h.Space.InSender(m.Subject)
	if kind != events.KindResume || h.Defer == nil {
		if isLease {
			return h.keepPlaceUnbudgeted(m, delay)
		}
		if d, aside := h.putAside(m, delay); aside {
			return d
		}
	}
	h.often(m, slog.LevelWarn, "a turn of an unknown workflow is left to the next sweep", "", "seq", m.Lease.Seq)
	return h.ackUnlessHeldLater(m)
}

// whileTurnLives is the delay of a message of a claimed turn whose workflow is unknown here: another
// worker may know it. At first it is offered often, because workers of several workflows may share
// the pool, then ever more rarely.
func (h *Handlers) whileTurnLives(m *message) time.Duration {
	if m.offers() <= graceNaks && m.Deferrals == 0 {
		return h.handOverDelay(m)
	}
	return h.rarely(m)
}

// handOverDelay is how long to wait before another worker is offered a message of a workflow that is
// unknown here: hardly at all at first, because workers of other workflows may share the pool, then
// ever longer within the binding grace, however long that is: a few dozen times at most.
func (h *Handlers) handOverDelay(m *message) time.Duration {
	if m.offersQuickly() {
		return firstOffer
	}
	longest := max(h.BindingGrace/(graceNaks-10), time.Millisecond)
	return min(firstOffer<<min(max(m.offers(), 1)-1, 30), longest)
}

// firstOffer is the shortest delay of what another worker may know.
const firstOffer = 5 * time.Millisecond

// offersQuickly reports whether a message that was deferred was delivered again just now.
func (m *message) offersQuickly() bool { return m.Deferrals > 0 && m.Lease.Delivery < quickOffers }

// rarely is the delay of a message that has to wait for a worker that knows its workflow for as long
// as its turn may live: a part of its age, so that it is delivered a few dozen times in a week.
func (h *Handlers) rarely(m *message) time.Duration {
	if m.offersQuickly() {
		return firstOffer
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

// aloneGrace is the grace of a worker that is the only one: as long as it takes to load a folder
// that was just saved.
const aloneGrace = 2 * time.Second

// grace is how long an unclaimed turn of an unknown workflow waits for a worker that knows it.
func (h *Handlers) grace() time.Duration {
	if h.BindingGrace > aloneGrace && h.Alone != nil && h.Alone() {
		return aloneGrace
	}
	return h.BindingGrace
}

// inGrace reports whether other workers are still offered a message of a workflow that is unknown
// here: for the binding grace, and one that was put aside meanwhile for a few times more.
func (h *Handlers) inGrace(m *message) bool {
	return h.age(m) < h.grace() || m.offersQuickly() && m.Deferrals < graceDeferrals
}

// putAside has the server publish a message again later, and settles it when that is certain. If it
// is not, the message comes back. It reports false for a message that must not or cannot be put aside.
func (h *Handlers) putAside(m *message, delay time.Duration) (inbound.Disposition, bool) {
	if h.Defer == nil {
		return inbound.NakAfter(delay), true
	}
	if !h.mayPutAside(m) {
		return inbound.Acked(), false
	}
	return h.putsAside(m, delay)
}

func (h *Handlers) putsAside(m *message, delay time.Duration) (inbound.Disposition, bool) {
	first := max(h.BindingGrace/3, time.Second)
	away := max(delay, min(first<<min(m.Deferrals, 12), longestAside))
	away += deferral.Spread(m.Lease.Seq, away/4) // many may have come at once
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
		h.often(m, slog.LevelWarn, "a message cannot be put aside", "", "seq", m.Lease.Seq, "bytes", len(m.Data), "err", events.LogText(err))
		return inbound.Disposition{}, false
	case err != nil:
		return h.undecided(m, "it could not be put aside", err), true
	}
	// Another delivery may have the turn by now. What was put aside is its duplicate then.
	done := h.ackUnlessHeldLater(m)
	if done.Do != inbound.Ack {
		return done, true
	}
	h.Metrics.Deferred.Inc()
	h.Logger.Debug("a message is put aside", "seq", m.Lease.Seq, "for", away.Round(time.Millisecond), "deferrals", m.Deferrals+1)
	return done, true
}

// offered gives a message that is offered again and whose workflow is unknown here back within the
// binding grace, unread: it was read the first time. It reports false if the budget has no place, and for kinds of
// messages that no binding decides.
func (h *Handlers) offered(m *message, in subjects.Inbound) (inbound.Disposition, bool) {
	switch turn := in.Kind == events.KindStructuredOutputReady; {
	case !h.offersAgain(m, in.Workflow), !turn && !events.AnswerKind(in.Kind) && in.Kind != events.KindExpire,
		turn && h.age(m) > h.MaxEventAge:
		return inbound.Disposition{}, false
	}
	return h.keepPlace(m, h.handOverDelay(m))
}

// offersAgain reports whether a message was offered before and is offered to others now. Workflow is a token.
func (h *Handlers) offersAgain(m *message, workflow string) bool {
	return m.offers() > 1 && !h.knows(workflow) && h.inGrace(m)
}

// putAsideAgain puts a message aside again beyond the budget, without a look at its question. Of one that was not put
// aside before it has to be known whether it is secret, or whose turn it is.
func (h *Handlers) putAsideAgain(m *message, workflow string) (inbound.Disposition, bool) {
	if m.Deferrals == 0 || len(m.turns) == 0 || !h.offersAgain(m, workflow) {
		return inbound.Disposition{}, false
	}
	m.secret = m.Sealed // else it would not have been put aside open
	return h.putAside(m, h.handOverDelay(m))
}

// elsewhere gives a message of a workflow that is unknown here back: another worker may know it,
// while this one could only end its turn. That is so within the binding grace, and for an open
// question until its turn is past its life: who has waited for days for an answer does not lose
// it to a deploy without the workflow. Workflow is a token; q is the question, nil if it is not
// known. Waits says that the question has to wait for another worker, and the message cannot be given back.
func (h *Handlers) elsewhere(m *message, workflow string, q *inquiry) (d inbound.Disposition, back, waits bool) {
	if h.knows(workflow) {
		return inbound.Disposition{}, false, false
	}
	delay := h.handOverDelay(m)
	if !h.inGrace(m) {
		age := h.age(m)
		if q == nil || h.MaxTurnLife > 0 && age >= h.MaxTurnLife || h.hasEnded(m, q.key) {
			return inbound.Disposition{}, false, false
		}
		h.often(m, slog.LevelWarn, "no worker has the workflow of an open question: start one that has it, or send the answer again then", "",
			"workflow", q.WorkflowName, "chat", q.ChatID, "question", q.ToolCallID, "seq", m.Lease.Seq, "age", age.Round(time.Second))
		delay = h.rarely(m)
	}
	d, back = h.giveBack(m, delay)
	return d, back, !back && q != nil
}

// hasEnded reports whether a turn has its response, as far as a read tells.
func (h *Handlers) hasEnded(m *message, key subjects.Key) bool {
	ended, err := h.Journal.Ended(m.Held, key)
	return err == nil && ended
}

func (h *Handlers) knows(workflow string) bool {
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

// An acknowledgement of any delivery removes the message from the stream, also one that a later
// delivery holds as the lease of a turn that runs. So whoever acknowledges a message although its turn
// has not ended looks first whether a later delivery has claimed the turn or taken it over. A flood of new messages
// costs no look, see [Handlers.onlyDelivery].

// keys are the keys under which a turn may have been claimed: its workflow may have run reused keys when it was.
func (t *turn) keys() []subjects.Key { return []subjects.Key{t.Key, t.ownKey()} }

// leases returns under which deliveries the turns are held that a message may be the lease of.
func (h *Handlers) leases(m *message) ([]idempotency.Lease, error) {
	if len(m.turns) == 0 {
		return nil, nil
	}
	leases, err := h.Journal.Leases(m.Held, m.turns...)
	if err != nil {
		return nil, fmt.Errorf("look which delivery holds the turn: %w", err)
	}
	return leases, nil
}

// onlyDelivery reports whether a message has been delivered once and cannot have been delivered again by now. The server
// does that when an ack wait is over, and a new leader of the consumer, or a server that has started again, counts it
// from when the stream took the message, unless there was a heartbeat. So one that has waited in the stream may have
// been delivered again however fresh this delivery is. An ack wait that an operator lowers by hand can be known too late.
func (h *Handlers) onlyDelivery(m *message) bool {
	return m.Lease.Delivery == 1 && m.Fresh() && m.AckWait != nil && h.serverNow(m).Sub(m.Arrived) < m.AckWait()/2
}

// keepInProgress sends the first heartbeat of a message that has waited in the stream, once it is the lease of a turn whose tool
// may not be entered again: until then a new leader of the consumer redelivers the message immediately, and the worker that
// gets it ends the turn as interrupted. Turns of other tools run again then. Now is the time by the server's clock.
func keepInProgress(m *message, effect string, now time.Time) {
	if effect != string(bindings.EffectUnsafe) && effect != string(bindings.EffectReplay) || m.Refresh == nil || m.AckWait == nil {
		return
	}
	if now.Sub(m.Arrived) > m.AckWait()/3 {
		m.Refresh()
	}
}

// ackUnlessHeldLater acknowledges a message whose turn continues without it. It leaves one that a later
// delivery holds, or may hold.
func (h *Handlers) ackUnlessHeldLater(m *message) inbound.Disposition {
	if h.onlyDelivery(m) {
		return inbound.Acked()
	}
	leases, err := h.leases(m)
	return h.ackUnlessLater(m, leases, err)
}

// ackUnlessLater is [Handlers.ackUnlessHeldLater] with the leases, or why they are not known.
func (h *Handlers) ackUnlessLater(m *message, leases []idempotency.Lease, err error) inbound.Disposition {
	later := slices.ContainsFunc(leases, func(l idempotency.Lease) bool { return l.After(m.Lease) })
	switch {
	case err != nil:
		return h.undecided(m, "a later delivery may hold its turn", err)
	case later || !m.Fresh():
		h.Logger.Debug("another delivery may hold the message; it is left", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery)
		return inbound.Left()
	}
	return inbound.Acked()
}

// turnOf returns the key of the turn that an answer names; none if only its question leads to it.
func turnOf(r *events.ToolCallResponse) []subjects.Key {
	callID, _, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil
	}
	if _, qualified := events.Unqualified(callID); qualified {
		return nil
	}
	return []subjects.Key{subjects.TurnKey(r.App, r.Chat, r.Run, events.TurnOfCallID(callID, r.Run))}
}

// mayPutAside reports whether a message may be put aside within the bounds of its tenant and of all. A
// store that is nearly full changes nothing: what is put aside leaves the inbound stream. Two kinds have no bound of
// their own. Expiries: workers alone send them, one for each open question, and that had a schedule before. And
// answers that come again: each had room before, which newer messages must not take from it.
func (h *Handlers) mayPutAside(m *message) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	if h.DeferralQuota == nil || in.Kind == events.KindExpire || m.ByWorker && m.Deferrals > 0 {
		return true
	}
	room, err := h.DeferralQuota(m.Held, in.App, m.Bytes(&m.Message))
	if err != nil {
		h.often(m, slog.LevelWarn, "what is put aside cannot be counted: the last count decides", "", "err", err)
	}
	if !room {
		h.often(m, slog.LevelWarn, "too much is put aside: messages that wait are decided at once", "", "seq", m.Lease.Seq)
	}
	return room
}

// unopened handles a sealed message that this worker cannot open. Another worker may have its key, as while
// keys are rotated, so it is given back for as long as a turn may live.
func (h *Handlers) unopened(m *message, err error) inbound.Disposition {
	age := h.age(m)
	if !m.ByWorker || !errors.Is(err, secrets.ErrUnknownKey) || h.MaxTurnLife > 0 && age >= h.MaxTurnLife {
		return h.unparsed(m, err)
	}
	h.often(m, slog.LevelWarn, "an answer that was put aside waits for a worker with its key", "", "seq", m.Lease.Seq,
		"age", age.Round(time.Second), "err", events.LogText(err))
	if d, back := h.giveBack(m, h.rarely(m)); back {
		return d
	}
	d := h.ackUnlessHeldLater(m)
	if d.Do == inbound.Ack {
		h.Metrics.Answers.WithLabelValues(string(events.AnswerUnknown)).Inc()
		h.tell(m, events.NewAnswerResult(events.AnswerUnknown, "", textNoRoom))
	}
	return d
}
