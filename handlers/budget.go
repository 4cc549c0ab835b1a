package handlers

import (
	"container/heap"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/mutant"
)

// defaultMaxAckPending is how many messages the workers of a pool hold together if the consumer does
// not say: as many as package provision sets.
const defaultMaxAckPending = 20_000

// givenBackShare is the share of a process in what its pool may hold, one in so many, for messages that are given back
// with a delay. Six workers that use up all of their shares, see [Registry.Resize], leave a quarter to turns that run.
const givenBackShare = 64

// SetMaxAckPending sets how many messages the workers of the pool may hold together from now on, as
// the configuration of its consumer says, and with it the shares of this process. 0 or less is
// unknown, or no limit: then it counts as 20,000. What holds a place keeps it.
func (h *Handlers) SetMaxAckPending(n int) {
	if n <= 0 {
		n = defaultMaxAckPending
	}
	if before := h.maxAckPending.Swap(int64(n)); before == int64(n) {
		return
	} else if before > 0 {
		h.Logger.Info("the consumer allows another number of messages to be held; the shares of this worker follow",
			"before", before, "max_ack_pending", n)
	}
	h.givenBack.resize(n / givenBackShare)
	h.runs.Resize(n)
}

// budget shares places out among tenants. A tenant may take another place while it holds fewer than
// are free: alone it gets half of them, with a second one a third, and so on. Whatever one tenant
// does, the next one finds places. It is safe for concurrent use.
type budget struct {
	mu   sync.Mutex
	all  int
	used int
	of   map[string]int // by the token of the tenant
	ends ends           // of places that were taken for a time
}

// newBudget returns a budget of so many places, of at least one.
func newBudget(places int) *budget { return &budget{all: max(places, 1), of: map[string]int{}} }

// resize sets how many places there are from now on. Places that are taken stay taken.
func (b *budget) resize(places int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = max(places, 1)
}

// take takes a place for a tenant until [budget.free], and reports whether there is one.
func (b *budget) take(app string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takes(app, 1)
}

// takeFor takes places for a tenant for a time that begins now, and reports whether there are as many.
func (b *budget) takeFor(app string, places int, now time.Time, d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	if !b.takes(app, places) {
		return false
	}
	heap.Push(&b.ends, end{now.Add(d), app, places})
	return true
}

// crowded reports whether a tenant holds more than half as many places as are free now.
func (b *budget) crowded(app string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	return 2*b.of[app] > b.all-b.used
}

// free gives a place back that was taken with [budget.take].
func (b *budget) free(app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaves(app, 1)
}

// expire frees the places that were taken for a time that is over.
func (b *budget) expire(now time.Time) {
	for len(b.ends) > 0 && !now.Before(b.ends[0].at) {
		over := heap.Pop(&b.ends).(end) //nolint:forcetypeassert // the heap holds nothing else
		b.leaves(over.app, over.places)
	}
}

func (b *budget) takes(app string, places int) bool {
	if b.of[app]+2*places-1 > b.all-b.used && !mutant.Planted(mutant.BudgetIgnored) {
		return false
	}
	b.used += places
	b.of[app] += places
	return true
}

func (b *budget) leaves(app string, places int) {
	b.used -= places
	if b.of[app] -= places; b.of[app] == 0 {
		delete(b.of, app)
	}
}

// end is when places are free again.
type end struct {
	at     time.Time
	app    string
	places int
}

// ends is a heap, the next one first.
type ends []end

// Len implements [heap.Interface].
func (e *ends) Len() int { return len(*e) }

// Less implements [heap.Interface].
func (e *ends) Less(i, j int) bool { return (*e)[i].at.Before((*e)[j].at) }

// Swap implements [heap.Interface].
func (e *ends) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }

// Push implements [heap.Interface].
func (e *ends) Push(x any) { *e = append(*e, x.(end)) } //nolint:forcetypeassert // of our own

// Pop implements [heap.Interface].
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
