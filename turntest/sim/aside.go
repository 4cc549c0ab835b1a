package sim

import (
	"context"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Places of a simulated pool: so few that each worker gives back one message at a time, and puts the
// others aside.
const (
	placesOfPool   = 64
	placesOfWorker = 1
)

// aside is a message that is put aside.
type aside struct {
	handlers.Deferral

	m *message
}

// putAside is what the server does with a schedule that publishes a message again: the last one under
// an id counts.
func (w *world) putAside(ctx context.Context, d handlers.Deferral) error {
	m := w.active.t.m
	put := func() {
		w.asides[d.ID] = aside{d, m}
		m.aside = true
		w.tracef("  %s is put aside for %s", m, d.At.Sub(w.now))
	}
	w.active.flight = put
	w.yield("put aside")
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
	return nil
}

// again publishes the messages whose time has come, and reports whether there are any.
func (w *world) again() bool {
	found := false
	for _, id := range w.asideIDs() {
		a := w.asides[id]
		if a.At.After(w.now) {
			continue
		}
		delete(w.asides, id)
		copied := &message{
			w: w, turn: a.m.turn, pool: a.m.pool, kind: a.m.kind, data: a.m.data, fingerprint: a.m.fingerprint, answer: a.m.answer,
			first: a.m.first, subject: a.Subject, header: a.Header, body: a.Data,
		}
		a.m.copies = append(a.m.copies, copied)
		w.unsent = append(w.unsent, copied)
		found = true
	}
	return found
}

// asideIDs are the ids of what is put aside, in a fixed order.
func (w *world) asideIDs() []string {
	ids := make([]string, 0, len(w.asides))
	for id := range w.asides {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// checkAside: a message is not acknowledged because it was put aside when its worker could know that a later
// delivery holds the turn. Known is how many records the journal had when the worker decided so; what it
// decided on is its last look at the turn.
func (w *world) checkAside(m *message, by *thread, known int) {
	if !m.aside || by.misled {
		return
	}
	if by.looked {
		known = min(known, by.saw)
	}
	for i := range w.store.log[:known] {
		r := &w.store.log[i]
		if l := r.Meta.Lease; holdsLease(r) && m.turn.had(r.Seq) && l.After(by.lease) && w.history(m.turn).newest == l && len(w.history(m.turn).responses) == 0 {
			w.violatef("%s: %s puts #%d/%d aside and acknowledges it under delivery %d, which holds the turn", m.turn.id.Turn, by.p.name, l.Seq, by.lease.Delivery, l.Delivery)
			return
		}
	}
}

// holdsLease reports whether a record makes a delivery the lease of its turn.
func holdsLease(r *idempotency.Record) bool {
	k, ok := subjects.ParseKey(r.Key)
	return ok && (k.Kind == "takeover" || k.Kind == events.KindToolCall && !k.Private && k.ID == "")
}

// lives reports whether a message is in the stream, or will be again.
func (m *message) lives() bool {
	if !m.settled {
		return true
	}
	for _, a := range m.w.asides {
		if a.m == m {
			return true
		}
	}
	return slices.ContainsFunc(m.copies, (*message).lives)
}

// waitsAside reports whether a message of a turn is put aside.
func (w *world) waitsAside(t *turn) bool {
	for _, a := range w.asides {
		if a.m.turn == t {
			return true
		}
	}
	return false
}

// places checks that a worker gives no more messages back than it has places for. One that it gave
// back keeps its place for the delay.
func (p *process) places(delay time.Duration) {
	p.given = slices.DeleteFunc(p.given, func(end time.Time) bool { return !end.After(p.w.now) })
	if len(p.given) >= placesOfWorker {
		p.w.violatef("%s gives back %d messages at the same time, and has %d places", p.name, len(p.given)+1, placesOfWorker)
	}
	p.given = append(p.given, p.w.now.Add(delay))
}
