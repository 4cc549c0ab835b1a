package sim

import (
	"context"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/subjects"
)

// The simulated server side of deferred messages: schedules that publish a message again, a quota of them, and the
// places that requeued messages keep.

// Places of a simulated pool: so few that each worker requeues one message at a time, and defers the
// others.
const (
	placesOfPool   = 64
	placesOfWorker = 1
)

// maxDeferred is how many messages may be deferred in a schedule that has a bound for them.
const maxDeferred = 3

// deferralQuota reports whether another message may be deferred. If the read fails, what was counted before decides.
func (w *world) deferralQuota(ctx context.Context, _ string, _ int) (bool, error) {
	err := w.store.read(ctx, "how much is deferred")
	t := w.active.t
	t.asked, t.noRoom = true, len(w.deferrals) >= w.room
	if t.noRoom {
		w.noRoom++
		w.tracef("  there is no room to defer #%d/%d", t.m.seq, t.lease.Delivery)
	}
	return !t.noRoom, err
}

// deferred is a message that is deferred.
type deferred struct {
	deferral.Message

	m *message
}

// holdsQuota reports whether a message may be deferred whether there is room or not: an expiry, and an answer that
// was deferred before.
func (w *world) holdsQuota(d deferral.Message) bool {
	in, _ := w.sim.space.ParseIn(d.Subject)
	return in.Kind == events.KindExpire || in.Kind == events.KindDeferredResponse && d.Header.Get(deferral.HeaderDeferrals) != "1"
}

// deferMessage is what the server does with a schedule that publishes a message again: the last one under
// an id counts.
func (w *world) deferMessage(ctx context.Context, d deferral.Message) error {
	m := w.active.t.m
	if t := w.active.t; !w.holdsQuota(d) && (t.noRoom || !t.asked) {
		w.violatef("%s: %s defers #%d, and there is no room for it", m.turn.id.Turn, w.active.p.name, m.seq)
	}
	put := func() {
		w.deferrals[d.ID] = deferred{d, m}
		m.deferred = true
		w.tracef("  %s is deferred for %s", m, d.At.Sub(w.now))
	}
	w.active.flight = put
	w.yield("deferred")
	w.active.flight = nil
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case w.strike(UnknownNow, 4):
		put()
		return errNoAnswer
	case w.strike(UnknownLater, 4):
		w.flying = append(w.flying, put)
		return errNoAnswer
	case w.strike(UnknownNever, 4):
		return errNoAnswer
	}
	put()
	w.slowly(m)
	return nil
}

// slowly delays the answer to a write until the message is delivered again: more often the message of a turn, which the next
// worker may claim.
func (w *world) slowly(m *message) {
	if m.kind != events.KindStructuredOutputReady && w.chance(3, 4) || !w.strike(LostBeats, 1) {
		return
	}
	w.losing = m
	until := w.steps + 20 + w.rng.IntN(40)
	w.active.await("deferred, and no answer yet", func() bool { return w.healed || w.steps >= until })
}

// again publishes the messages whose time has come, and reports whether there are any.
func (w *world) again() bool {
	found := false
	for _, id := range w.scheduleIDs() {
		a := w.deferrals[id]
		if a.At.After(w.now) {
			continue
		}
		delete(w.deferrals, id)
		copied := &message{
			w: w, turn: a.m.turn, pool: a.m.pool, kind: a.m.kind, data: a.m.data, fingerprint: a.m.fingerprint, answer: a.m.answer, chat: a.m.chat, sent: a.m.sent, content: a.m.content,
			first: a.m.first, subject: a.Subject, header: a.Header, body: a.Data,
		}
		a.m.copies = append(a.m.copies, copied)
		w.unsent = append(w.unsent, copied)
		found = true
	}
	return found
}

// scheduleIDs are the ids of deferred messages, in a fixed order.
func (w *world) scheduleIDs() []string {
	ids := make([]string, 0, len(w.deferrals))
	for id := range w.deferrals {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// checkDeferred: a message is not acknowledged because it was deferred when its worker has read that a later delivery
// holds the turn.
func (w *world) checkDeferred(m *message, by *thread) {
	if !m.deferred || by.sawStaleRead {
		return
	}
	for i := range w.store.log {
		r := &w.store.log[i]
		k, _ := subjects.ParseKey(r.Key)
		l := r.Meta.Lease
		if i >= by.looked[checkpoint{k.Key, k.Kind}] || !holdsLease(r) || !l.After(by.lease) {
			continue
		}
		for _, t := range m.turnsOf() {
			if h := w.history(t); t.had(r.Seq) && h.newest == l && len(h.responses) == 0 {
				w.violatef("%s: %s defers #%d/%d and acknowledges it under delivery %d, which holds the turn", t.id.Turn, by.p.name, l.Seq, by.lease.Delivery, l.Delivery)
				return
			}
		}
	}
}

// holdsLease reports whether a record makes a delivery the lease of its turn.
func holdsLease(r *idempotency.Record) bool {
	k, ok := subjects.ParseKey(r.Key)
	return ok && (k.Kind == "takeover" || k.Kind == events.KindToolCall && k.Call == subjects.SingleCall && !k.Private && k.ID == "")
}

// lives reports whether a message is in the stream, or will be again.
func (m *message) lives() bool {
	if !m.settled {
		return true
	}
	for _, a := range m.w.deferrals {
		if a.m == m {
			return true
		}
	}
	return slices.ContainsFunc(m.copies, (*message).lives)
}

// isDeferred reports whether a message of a turn is deferred.
func (w *world) isDeferred(t *turn) bool {
	for _, a := range w.deferrals {
		if slices.Contains(a.m.turnsOf(), t) {
			return true
		}
	}
	return false
}

// places checks that a worker requeues no more messages than it has places for, but for the lease of a turn that
// must not be deferred, or was the lease when the worker began: what it has read since then may be older than another
// takeover; for an answer that was stored before, which resumes its turn; and for the lease of an agent's message whose text is
// stored. One that it requeued keeps its place for the delay.
func (p *process) places(t *thread, delay time.Duration) {
	if t.noRoom {
		for _, of := range t.m.turnsOf() {
			began, now := t.w.historyUntil(of, t.known), t.w.history(of)
			if began.newest.Same(t.lease) || now.newest.Same(t.lease) || now.answeredBy(t.lease) || p.w.holdsText(t) {
				return
			}
		}
	}
	p.given = slices.DeleteFunc(p.given, func(end time.Time) bool { return !end.After(p.w.now) })
	if len(p.given) >= placesOfWorker {
		p.w.violatef("%s requeues %d messages at the same time, and has %d places", p.name, len(p.given)+1, placesOfWorker)
	}
	p.given = append(p.given, p.w.now.Add(delay))
}

// holdsText reports whether the delivery is of the message that has stored the text of an agent or a user.
func (w *world) holdsText(t *thread) bool {
	c := t.m.chat
	if c == nil {
		return false
	}
	text := w.textOf(c)
	return text != nil && text.Meta.Lease.Same(t.lease)
}

// answeredBy reports whether a message stored the answer to a question of the turn.
func (h *history) answeredBy(message idempotency.Lease) bool {
	for _, q := range h.questions {
		if q.answer != nil && q.answer.Meta.Lease.Same(message) {
			return true
		}
	}
	return false
}
