package deferral

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/subjects"
)

// Bounds of what is put aside. In all it may hold as many bytes as the inbound stream, from which it comes: what is
// beyond that is decided, or stays there, so that the inbound stream fills and refuses publishes.
const (
	maxDeferred  = 50_000    // messages of a tenant
	tenantShare  = 4         // of the bytes, a tenant may have one part in so many
	defaultBytes = 512 << 20 // bytes in all if the inbound stream has no bound
	overhead     = 1 << 10   // bytes of a message besides its data and the headers of its sender
)

// A look at what is put aside lists all of it, at a cost to the server that grows with it. So a worker
// looks once in minRecountGap at most, and spends one part in recountShare of its time on it, but looks each maxRecountGap, and
// while messages are refused one part in refusedRecountShare.
const (
	minRecountGap       = time.Second
	recountShare        = 100
	maxRecountGap       = time.Minute
	refusedRecountShare = 20
)

// Quota bounds what is put aside, for each tenant and in all. It counts the schedules in the stream of the timers,
// so that the bound holds for all workers and outlives each of them; between two looks a worker adds what it
// has put aside itself. It is safe for concurrent use.
type Quota struct {
	list     func(context.Context) (usage, error)
	counting chan struct{} // holds something while a caller looks

	mu      sync.Mutex
	counted bool      // whether a look was tried
	next    time.Time // when to look again
	soon    time.Time // when to look again before a message is refused
	use     usage     // as of the last look that succeeded, and what was put aside since
	since   usage     // what was put aside since the last look began
}

// usage is how much is put aside.
type usage struct {
	most    int64 // bytes in all, 0 as long as that is not known
	bytes   int64
	tenants map[string]tenantUsage // by their tokens; each has taken bytes of all, which bounds them
}

// tenantUsage is how much of a tenant is put aside.
type tenantUsage struct {
	msgs  int
	bytes int64
}

// NewQuota returns the bounds of the stream of the timers.
func NewQuota(js jetstream.JetStream, space subjects.Space) *Quota {
	return newQuota(func(ctx context.Context) (usage, error) { return countDeferred(ctx, js, space) })
}

func newQuota(list func(context.Context) (usage, error)) *Quota {
	return &Quota{list: list, counting: make(chan struct{}, 1)}
}

// Take reports whether a message of a tenant with so many bytes of data and of its sender's headers may be put
// aside, and counts it. The tenant is a token. One call at a time looks at what is put aside, and others decide by
// what was counted last; they wait only for the first look. An error says that the look failed: then
// that count decided, too.
func (r *Quota) Take(ctx context.Context, app string, bytes int) (bool, error) {
	size := int64(bytes) + overhead
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
func (r *Quota) take(app string, size int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := r.use.most
	if most <= 0 {
		most = defaultBytes
	}
	of := r.use.tenants[app]
	fits := of.msgs < maxDeferred && of.bytes+size <= most/tenantShare && r.use.bytes+size <= most
	if fits {
		r.use.add(app, 1, size)
		r.since.add(app, 1, size)
	}
	return fits
}

func (u *usage) add(app string, msgs int, bytes int64) {
	if u.tenants == nil {
		u.tenants = map[string]tenantUsage{}
	}
	of := u.tenants[app]
	u.tenants[app] = tenantUsage{of.msgs + msgs, of.bytes + bytes}
	u.bytes += bytes
}

// refresh looks at what is put aside if it is time to; refused says that a message has no room by the last count.
func (r *Quota) refresh(ctx context.Context, refused bool) error {
	known, due := r.recountDue(refused)
	if !due {
		return nil
	}
	select {
	case r.counting <- struct{}{}:
	default:
		if known {
			return nil
		}
		select {
		case r.counting <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-r.counting }()
	if _, due := r.recountDue(refused); !due { // another call has looked meanwhile
		return nil
	}
	return r.count(ctx)
}

// count looks at what is put aside.
func (r *Quota) count(ctx context.Context) error {
	r.mu.Lock()
	r.since = usage{}
	r.mu.Unlock()
	began := time.Now()
	counted, err := r.list(context.WithoutCancel(ctx)) // it counts for other messages, too
	r.mu.Lock()
	defer r.mu.Unlock()
	took, now := time.Since(began), time.Now()
	r.counted = true
	r.next = now.Add(min(max(recountShare*took, minRecountGap), maxRecountGap))
	r.soon = now.Add(max(refusedRecountShare*took, minRecountGap))
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
func (r *Quota) recountDue(refused bool) (known, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return r.counted, !now.Before(r.next) || refused && !now.Before(r.soon)
}
