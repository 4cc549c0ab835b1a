package deferral

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/subjects"
)

// This file bounds the deferred messages. [Quota.Take] decides by the last count and the worker's own deferrals since
// then; refresh counts again when that is due (recountDue), and one caller at a time does (counting).

// Bounds of deferred messages. Together they may have as many bytes as the inbound stream, from which they come: a
// message beyond that is decided now, or stays there, so that the inbound stream fills and refuses publishes.
const (
	maxDeferred  = 50_000    // messages of a tenant
	tenantShare  = 4         // of the bytes, a tenant may have one part in so many
	defaultBytes = 512 << 20 // bytes in all if the inbound stream has no bound
	overhead     = 1 << 10   // bytes of a message besides its data and the headers of its sender
)

// A count lists all schedules, at a cost to the server that grows with their number. So a worker counts once in
// minRecountGap at most, and spends one part in recountShare of its time on it, but counts at least each
// maxRecountGap. While messages are refused it spends one part in refusedRecountShare.
const (
	minRecountGap       = time.Second
	recountShare        = 100
	maxRecountGap       = time.Minute
	refusedRecountShare = 20
)

// Quota bounds the deferred messages, for each tenant and in total. It counts the schedules in the stream of the timers,
// so that the bound holds for all workers and outlives each of them; between two counts a worker adds what it
// defers itself. It is safe for concurrent use.
type Quota struct {
	list     func(context.Context) (usage, error)
	counting chan struct{} // full while a caller counts

	mu      sync.Mutex
	counted bool      // whether a count was tried
	next    time.Time // when to count again
	soon    time.Time // when to count again before a message is refused
	use     usage     // as of the last count that succeeded, and what was deferred since
	since   usage     // what was deferred since the last count began
}

// usage is how much is deferred.
type usage struct {
	most    int64 // bytes in all, 0 as long as that is not known
	bytes   int64
	tenants map[string]tenantUsage // by their tokens; each has taken bytes of all, which bounds them
}

// tenantUsage is how much of a tenant is deferred.
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

// Take reports whether a message of a tenant with so many bytes of data and of its sender's headers may be deferred,
// and adds it. The tenant is a token. One call at a time counts the schedules; the others decide by the last count and
// wait only for the first one. If counting fails, the last count decides and the error is returned as well.
func (r *Quota) Take(ctx context.Context, app string, bytes int) (bool, error) {
	size := int64(bytes) + overhead
	err := r.refresh(ctx, false)
	if r.take(app, size) {
		return true, err
	}
	// Messages that were redelivered since the last count are still in it.
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

// refresh counts if that is due; refused is set if the last count leaves no room for a message.
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
	if _, due := r.recountDue(refused); !due { // another call has counted meanwhile
		return nil
	}
	return r.count(ctx)
}

// count counts the deferred messages.
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
	for app, of := range r.since.tenants { // the count may have missed it
		counted.add(app, of.msgs, of.bytes)
	}
	r.use = counted
	return nil
}

// recountDue reports whether there was a count, and whether it is time for one.
func (r *Quota) recountDue(refused bool) (known, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return r.counted, !now.Before(r.next) || refused && !now.Before(r.soon)
}
