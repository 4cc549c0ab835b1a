package handlers

import (
	"context"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/mutant"
)

// A message that is given back with a delay keeps its place among those that the workers of a pool
// may hold together (MaxAckPending of the consumer), and a pool that has no place left takes nothing
// more, from no tenant. So a process gives back as many as its [budget] has places for. Others are put
// aside: a schedule publishes them again, and they take no place until then.

// longestPlace is how long a message may keep its place. One that has to wait longer is put aside.
const longestPlace = time.Minute

// Bounds of what is put aside.
const (
	// quickOffers is how often a message that comes again is offered to workers that may know its
	// workflow before it is put aside again, or judged without the workflow.
	quickOffers = 4
	// graceDeferrals is how often it is put aside at most before it is judged.
	graceDeferrals = 3
	// longestAside is how long a message is put aside if nothing wants it to wait longer.
	longestAside = time.Hour
)

// giveBack has a message delivered again after a delay, to any worker of its pool. Beyond the budget it
// is put aside, for longer, and if it must not be, it keeps its place all the same. Nothing is given back in
// another way.
func (h *Handlers) giveBack(m *Message, delay time.Duration) Disposition {
	if d, back := h.mayGiveBack(m, delay); back {
		return d
	}
	return nakAfter(max(delay, longestPlace))
}

// mayGiveBack is giveBack of a message that can be judged as well. It reports false when that is to be done: there
// is no place, and it must not be put aside.
func (h *Handlers) mayGiveBack(m *Message, delay time.Duration) (Disposition, bool) {
	if delay <= longestPlace && h.takesPlace(m, delay) {
		return nakAfter(delay), true
	}
	return h.putAside(m, delay)
}

// giveLeaseBack gives a message back that may be the lease of a claimed turn. While it is in the
// stream no sweep has to look after the turn, so it is offered again and again while there is a place, each
// time for a minute at most: the budget is that of a process, and what the one before it gave back holds
// places that it does not know of. Beyond the budget it is put aside, and a resume is acknowledged: the journal has the turn, and the
// next sweep publishes another one.
func (h *Handlers) giveLeaseBack(m *Message) Disposition {
	delay := h.whileTurnLives(m)
	if place := min(delay, longestPlace); h.takesPlace(m, place) {
		return nakAfter(place)
	}
	if in, _ := h.Space.ParseIn(m.Subject); in.Kind == events.KindResume && h.Defer != nil {
		h.Logger.Log(m.Held, h.oftenAs(in.App), "a resume of an unknown workflow is left to the next sweep", "seq", m.Lease.Seq)
		return h.ackUnlessHeldLater(m)
	}
	if d, aside := h.putAside(m, delay); aside {
		return d
	}
	return nakAfter(max(delay, longestPlace))
}

// takesPlace reports whether the budget has a place for a message that is given back for a time.
func (h *Handlers) takesPlace(m *Message, delay time.Duration) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	return h.givenBack.takeFor(in.App, h.Now(), delay)
}

// whileTurnLives is the delay of a message of a claimed turn whose workflow is unknown here: another
// worker may know it. At first it is offered often, because workers of several workflows may share
// the pool, then ever more rarely.
func (h *Handlers) whileTurnLives(m *Message) time.Duration {
	if m.offers() <= graceNaks && m.deferrals == 0 {
		return h.handOverDelay(m)
	}
	return h.rarely(m)
}

// handOverDelay is how long to wait before another worker is offered a message of a workflow that is
// unknown here: hardly at all at first, because workers of other workflows may share the pool, then
// ever longer within the binding grace.
func (h *Handlers) handOverDelay(m *Message) time.Duration {
	if m.offersQuickly() {
		return firstOffer
	}
	longest := max(h.BindingGrace/(graceNaks-10), time.Millisecond)
	return min(firstOffer<<min(max(m.offers(), 1)-1, 10), longest)
}

// firstOffer is the shortest delay of what another worker may know.
const firstOffer = 5 * time.Millisecond

// offersQuickly reports whether a message that was put aside has come again just now.
func (m *Message) offersQuickly() bool { return m.deferrals > 0 && m.Lease.Delivery < quickOffers }

// rarely is the delay of a message that has to wait for a worker that knows its workflow for as long
// as its turn may live: a part of its age, so that it is delivered a few dozen times in a week.
func (h *Handlers) rarely(m *Message) time.Duration {
	if m.offersQuickly() {
		return firstOffer
	}
	const part, least = 4, time.Second
	return max(h.age(m)/part, least)
}

// oftenAs is the level of a line about a message of a tenant that has to wait, or is refused: a warning
// once a minute, however many there are.
func (h *Handlers) oftenAs(app string) slog.Level {
	if h.warned.Add(app+h.Now().Truncate(time.Minute).Format(time.RFC3339), h.Now()) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// age is how long ago the inbound stream took a message first, by the server's clock.
func (h *Handlers) age(m *Message) time.Duration { return h.serverNow(m).Sub(m.Stored) }

// serverNow is the time by the server's clock.
func (h *Handlers) serverNow(m *Message) time.Time {
	if m.clock.Process.IsZero() || mutant.Planted(mutant.WorkerClockDecides) {
		return h.Now()
	}
	return m.clock.ToServer(h.Now())
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
func (h *Handlers) inGrace(m *Message) bool {
	return h.age(m) < h.grace() || m.offersQuickly() && m.deferrals < graceDeferrals
}

// spread returns a time up to most that is another one for each message, and always the same for one.
func spread(seq uint64, most time.Duration) time.Duration {
	const golden = 0x9E3779B97F4A7C15 // neighbours land far apart
	return time.Duration(seq * golden % uint64(most+1))
}

// putAside has the server publish a message again later, and settles it when that is certain. If it
// is not, the message comes back; if it never will be, the message keeps its place. It reports false for a
// message that must not be put aside.
func (h *Handlers) putAside(m *Message, delay time.Duration) (Disposition, bool) {
	if h.Defer == nil {
		return nakAfter(delay), true
	}
	switch may, err := h.mayPutAside(m); {
	case err != nil:
		return h.undecided(m, "it is not known how much is put aside", err), true
	case !may:
		return Disposition{}, false
	}
	return h.putsAside(m, delay), true
}

func (h *Handlers) putsAside(m *Message, delay time.Duration) Disposition {
	first := max(h.BindingGrace/3, time.Second)
	away := max(delay, min(first<<min(m.deferrals, 12), longestAside))
	away += spread(m.Lease.Seq, away/4) // many may have come at once
	d, err := h.deferral(m, h.serverNow(m).Add(away))
	if err != nil {
		return h.undecided(m, "it cannot be sealed", err)
	}
	ctx, cancel := context.WithTimeout(m.Held, putTimeout)
	defer cancel()
	switch err := h.Defer(ctx, d); {
	case errorsRefused(err):
		h.Logger.Warn("a message cannot be put aside; it keeps its place", "seq", m.Lease.Seq, "bytes", len(m.Data), "err", logError(err))
		return nakAfter(min(max(delay, first), longestPlace))
	case err != nil:
		return h.undecided(m, "it could not be put aside", err)
	}
	// Another delivery may have the turn by now. What was put aside is its duplicate then.
	done := h.ackUnlessHeldLater(m)
	if done.Do != Ack {
		return done
	}
	h.Metrics.Deferred.Inc()
	h.Logger.Debug("a message is put aside", "seq", m.Lease.Seq, "for", away.Round(time.Millisecond), "deferrals", m.deferrals+1)
	return done
}
