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
