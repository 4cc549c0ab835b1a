package oneturn

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// What a tenant may have the server search. A search goes through the messages that lie between two
// of the tenant, a million in 0.2 to 0.5 s, and nothing is stored meanwhile: others bear its cost.
const (
	searchBurst = 4_000_000 // messages passed over until the tenant has to wait
	searchRate  = 400_000   // after that, so many a second
	searchFree  = 1_000     // a search that passes over no more is not counted
)

// maxSearching is how many tenants are remembered before those are forgotten that may search again
// as much as ever.
const maxSearching = 1_000

// busyError refuses a request that would cost too much now.
type busyError struct{ after time.Duration }

// Error implements error.
func (e *busyError) Error() string {
	return fmt.Sprintf("busy: the requests of this tenant have the server search too much: try again after %d s, or ask for one chat or turn", e.seconds())
}

// Is makes it a kind of errBusy.
func (e *busyError) Is(target error) bool { return target == errBusy }

// seconds are those to wait, for header Retry-After.
func (e *busyError) seconds() int { return max(1, int(math.Ceil(e.after.Seconds()))) }

// searches bounds what the server searches for each tenant.
type searches struct {
	now func() time.Time

	mu      sync.Mutex
	tenants map[string]searched
}

// searched is how many messages a tenant has had passed over, less what it may by now.
type searched struct {
	messages uint64
	at       time.Time
}

func newSearches() *searches {
	return &searches{now: time.Now, tenants: map[string]searched{}}
}

// do searches a stream from a sequence on; search returns the one it has found. It returns a
// *busyError when the tenant has used up its budget.
func (s *searches) do(tenant string, from uint64, search func() (uint64, error)) error {
	if used := s.charge(tenant, 0); used > searchBurst {
		return &busyError{time.Duration(used-searchBurst) * time.Second / searchRate}
	}
	found, err := search()
	if found > from && found-from > searchFree {
		s.charge(tenant, found-from)
	}
	return err
}

// charge adds messages to what a tenant has used, and returns that.
func (s *searches) charge(tenant string, messages uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	used := s.tenants[tenant].left(now) + messages
	if used == 0 {
		delete(s.tenants, tenant)
		return 0
	}
	if len(s.tenants) >= maxSearching {
		for name, t := range s.tenants {
			if t.left(now) == 0 {
				delete(s.tenants, name)
			}
		}
	}
	s.tenants[tenant] = searched{used, now}
	return used
}

// left is what counts of it at a time.
func (t searched) left(now time.Time) uint64 {
	return t.messages - min(t.messages, uint64(now.Sub(t.at).Seconds()*searchRate))
}
