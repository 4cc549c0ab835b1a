package auth

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/oneturn/oneturn/internal/budget"
)

// maxBuckets bounds the users whose requests are counted at the same time.
const maxBuckets = 100_000

// buckets has a bucket for each user of a tenant; nil has no limit. A bucket is forgotten when it is full again, never before:
// a client that makes up users does not get another burst by that. Tenants share the places out, so that none can take them all.
type buckets struct {
	perSecond rate.Limit
	burst     int
	refill    time.Duration // until an empty bucket is full

	mu     sync.Mutex
	places *budget.Budget
	users  *simplelru.LRU[appUser, *bucket] // in the order of their last use
}

// bucket is the bucket of a user.
type bucket struct {
	*rate.Limiter

	used time.Time
}

// appUser is a user of a tenant.
type appUser struct{ app, user string }

func newBuckets(perSecond float64, burst int) *buckets {
	if perSecond <= 0 {
		return nil
	}
	burst = max(burst, 1)
	users, err := simplelru.NewLRU[appUser, *bucket](maxBuckets, nil)
	if err != nil {
		panic(err) // a constant that is not positive
	}
	return &buckets{
		perSecond: rate.Limit(perSecond), burst: burst, refill: time.Duration(float64(burst) / perSecond * float64(time.Second)),
		places: budget.New(maxBuckets), users: users,
	}
}

// take takes a request from the bucket of a user, or returns how long none is left. The function undoes it.
func (b *buckets) take(key appUser, now time.Time) (release func(), wait time.Duration) {
	if b == nil {
		return func() {}, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.users.Get(key)
	if !ok {
		if found = b.add(key, now); found == nil {
			return nil, b.refill
		}
	}
	request := found.ReserveN(now, 1)
	if wait = request.DelayFrom(now); wait > 0 {
		request.CancelAt(now) // a request that is refused costs nothing
		return nil, wait
	}
	found.used = now
	return func() { request.CancelAt(now) }, 0
}

// add makes a bucket, nil if its tenant has no place for one.
func (b *buckets) add(key appUser, now time.Time) *bucket {
	const atMost = 2 // more than one, so that the table shrinks to those in use
	for range atMost {
		oldest, found, ok := b.users.GetOldest()
		if !ok || now.Sub(found.used) < b.refill {
			break
		}
		b.users.Remove(oldest)
		b.places.Free(oldest.app)
	}
	if !b.places.Take(key.app) {
		return nil
	}
	made := &bucket{rate.NewLimiter(b.perSecond, b.burst), now}
	b.users.Add(key, made)
	return made
}
