package budget

import (
	"container/heap"
	"sync"
	"time"
)

// Budget shares places out among tenants. A tenant may take another place while it holds fewer than
// are free: alone it gets half of them, with a second one a third, and so on. Whatever one tenant
// does, the next one finds places. It is safe for concurrent use.
type Budget struct {
	mu   sync.Mutex
	all  int
	used int
	of   map[string]int // by the token of the tenant
	ends ends           // of places that were taken for a time
}

// New returns a budget of so many places, of at least one.
func New(places int) *Budget { return &Budget{all: max(places, 1), of: map[string]int{}} }

// Resize sets how many places there are from now on. Places that are taken stay taken.
func (b *Budget) Resize(places int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = max(places, 1)
}

// Take takes a place for a tenant until [Budget.Free], and reports whether there is one.
func (b *Budget) Take(app string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takes(app, 1)
}

// TakeFor takes places for a tenant for a time that begins now, and reports whether there are as many.
func (b *Budget) TakeFor(app string, places int, now time.Time, d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	if !b.takes(app, places) {
		return false
	}
	heap.Push(&b.ends, end{now.Add(d), app, places})
	return true
}

// Overused reports whether a tenant holds more than half as many places as are free now.
func (b *Budget) Overused(app string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(now)
	return 2*b.of[app] > b.all-b.used
}

// Free releases a place that was taken with [Budget.Take].
func (b *Budget) Free(app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaves(app, 1)
}

// expire frees the places that were taken for a time that is over.
func (b *Budget) expire(now time.Time) {
	for len(b.ends) > 0 && !now.Before(b.ends[0].at) {
		over := heap.Pop(&b.ends).(end) //nolint:forcetypeassert // the heap holds nothing else
		b.leaves(over.app, over.places)
	}
}

func (b *Budget) takes(app string, places int) bool {
	if b.of[app]+2*places-1 > b.all-b.used {
		return false
	}
	b.used += places
	b.of[app] += places
	return true
}

func (b *Budget) leaves(app string, places int) {
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
func (e *ends) Push(x any) { *e = append(*e, x.(end)) } //nolint:forcetypeassert // Push is called with an end

// Pop implements [heap.Interface].
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
