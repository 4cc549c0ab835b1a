package handlers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of what is put aside. In all it may hold as many bytes as the inbound stream, from which it comes: what is
// beyond that is decided, or stays there, so that the inbound stream fills and refuses publishes.
const (
	maxAside         = 50_000    // messages of a tenant
	asideShare       = 4         // of the bytes, a tenant may have one part in so many
	defaultAsideSize = 512 << 20 // bytes in all if the inbound stream has no bound
	asideOverhead    = 1 << 10   // bytes of a message besides its data and the headers of its sender
)

// A look at what is put aside lists all of it, at a cost to the server that grows with it. So a worker
// looks once in asideAgain at most, and spends one part in asideRest of its time on it, but looks each asideLatest, and
// while messages are refused one part in refusedRest.
const (
	asideAgain  = time.Second
	asideRest   = 100
	asideLatest = time.Minute
	refusedRest = 20
)

// AsideRoom bounds what is put aside, for each tenant and in all. It counts the schedules in the stream of the timers,
// so that the bound holds for all workers and outlives each of them; between two looks a worker adds what it
// has put aside itself. It is safe for concurrent use.
type AsideRoom struct {
	look  func(context.Context) (asideUse, error)
	looks chan struct{} // holds something while a caller looks

	mu    sync.Mutex
	known bool      // whether a look was tried
	next  time.Time // when to look again
	soon  time.Time // when to look again before a message is refused
	use   asideUse  // as of the last look that succeeded, and what was put aside since
	since asideUse  // what was put aside since the last look began
}

// asideUse is how much is put aside.
type asideUse struct {
	most    int64 // bytes in all, 0 as long as that is not known
	bytes   int64
	tenants map[string]asideOf // by their tokens; each has taken bytes of all, which bounds them
}

// asideOf is how much of a tenant is put aside.
type asideOf struct {
	msgs  int
	bytes int64
}

// NewAsideRoom returns the bounds of the stream of the timers.
func NewAsideRoom(js jetstream.JetStream, space subjects.Space) *AsideRoom {
	return newAsideRoom(func(ctx context.Context) (asideUse, error) { return lookAside(ctx, js, space) })
}

func newAsideRoom(look func(context.Context) (asideUse, error)) *AsideRoom {
	return &AsideRoom{look: look, looks: make(chan struct{}, 1)}
}

// Take reports whether a message of a tenant with so many bytes of data and of its sender's headers may be put
// aside, and counts it. The tenant is a token. One call at a time looks at what is put aside, and others decide by
// what was counted last; they wait only for the first look. An error says that the look failed: then
// that count decided, too.
func (r *AsideRoom) Take(ctx context.Context, app string, bytes int) (bool, error) {
	size := int64(bytes) + asideOverhead
	err := r.refresh(ctx, false)
	if r.take(app, size) {
		return true, err
	}
	// What came back since the last look is still counted.
	if errAgain := r.refresh(ctx, true); errAgain != nil {
		err = errAgain
	}
	return r.take(app, size), err
}

// take counts a message of so many bytes if there is room for it by the last count, and reports whether there is.
func (r *AsideRoom) take(app string, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.use.most
	if most <= 0 {
		most = defaultAsideSize
	}
	of := r.use.tenants[app]
	fits := of.msgs < maxAside && of.bytes+size <= most/asideShare && r.use.bytes+size <= most
	if fits {
		r.use.add(app, 1, size)
		r.since.add(app, 1, size)
	}
	return fits
}

func (u *asideUse) add(app string, msgs int, bytes int64) {
	if u.tenants == nil {
		u.tenants = map[string]asideOf{}
	}
	of := u.tenants[app]
	u.tenants[app] = asideOf{of.msgs + msgs, of.bytes + bytes}
	u.bytes += bytes
}

// refresh looks at what is put aside if it is time to; refused says that a message has no room by the last count.
func (r *AsideRoom) refresh(ctx context.Context, refused bool) error {
	known, due := r.due(refused)
	if !due {
		return nil
	}
	select {
	case r.looks <- struct{}{}:
	default:
		if known {
			return nil
		}
		select {
		case r.looks <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-r.looks }()
	if _, due := r.due(refused); !due { // another call has looked meanwhile
		return nil
	}
	return r.count(ctx)
}

// count looks at what is put aside.
func (r *AsideRoom) count(ctx context.Context) error {
	r.mu.Lock()
	r.since = asideUse{}
	r.mu.Unlock()
	began := time.Now()
	counted, err := r.look(context.WithoutCancel(ctx)) // it counts for other messages, too
	r.mu.Lock()
	defer r.mu.Unlock()
	took, now := time.Since(began), time.Now()
	r.known = true
	r.next = now.Add(min(max(asideRest*took, asideAgain), asideLatest))
	r.soon = now.Add(max(refusedRest*took, asideAgain))
	if err != nil {
		return err
	}
	for app, of := range r.since.tenants { // the look may have missed it
		counted.add(app, of.msgs, of.bytes)
	}
	r.use = counted
	return nil
}

// due reports whether there was a look, and whether it is time for one.
func (r *AsideRoom) due(refused bool) (known, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return r.known, !now.Before(r.next) || refused && !now.Before(r.soon)
}

// mayPutAside reports whether a message may be put aside within the bounds of its tenant and of all. A
// store that is nearly full changes nothing: what is put aside leaves the inbound stream. Two kinds have no bound of
// their own. Expiries: workers alone send them, one for each open question, and that had a schedule before. And
// answers that come again: each had room before, which newer messages must not take from it.
func (h *Handlers) mayPutAside(m *Message) bool {
	in, _ := h.Space.ParseIn(m.Subject)
	if h.AsideRoom == nil || in.Kind == events.KindExpire || m.byWorker && m.deferrals > 0 || mutant.Planted(mutant.RoomIgnored) {
		return true
	}
	room, err := h.AsideRoom(m.Held, in.App, m.asideBytes())
	if err != nil {
		h.often(m, slog.LevelWarn, "what is put aside cannot be counted: the last count decides", "", "err", err)
	}
	if !room {
		h.often(m, slog.LevelWarn, "too much is put aside: messages that wait are decided at once", "", "seq", m.Lease.Seq)
	}
	return room
}
