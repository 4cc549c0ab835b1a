package engine

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds of an [LRU].
const (
	DefaultCacheBytes = 64 << 20
	cacheEntries      = 100_000 // results at most, however small they are
	cacheEntryCost    = 256     // bytes that a result takes besides its own
	cacheShare        = 8       // of the bytes: a result that is longer than this part of them is not kept
)

// LRU is a [Cache] in memory. It is bounded in bytes and in results; the one that was used least
// recently makes room first. Make it with [NewLRU].
type LRU struct {
	most int // bytes

	mu    sync.Mutex
	bytes int
	lru   *simplelru.LRU[CacheKey, cached]
}

// cached is one result, and when it is too old.
type cached struct {
	value json.RawMessage
	end   time.Time
}

var _ Cache = (*LRU)(nil)

// NewLRU returns a cache of at most so many bytes; 0 is [DefaultCacheBytes], less keeps nothing.
func NewLRU(bytes int) *LRU {
	if bytes == 0 {
		bytes = DefaultCacheBytes
	}
	c := &LRU{most: bytes}
	lru, err := simplelru.NewLRU(cacheEntries, func(_ CacheKey, v cached) { c.bytes -= v.cost() })
	if err == nil { // its only error is a size below 1
		c.lru = lru
	}
	return c
}

func (v cached) cost() int { return len(v.value) + cacheEntryCost }

// Get implements [Cache].
func (c *LRU) Get(key CacheKey) (json.RawMessage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.lru.Get(key)
	if !ok {
		return nil, false
	}
	if !time.Now().Before(v.end) {
		c.lru.Remove(key)
		return nil, false
	}
	return v.value, true
}

// Put implements [Cache].
func (c *LRU) Put(key CacheKey, value json.RawMessage, ttl time.Duration) {
	v := cached{value, time.Now().Add(ttl)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
	if ttl <= 0 || v.cost() > c.most/cacheShare {
		return
	}
	c.bytes += v.cost()
	c.lru.Add(key, v)
	for c.bytes > c.most {
		c.lru.RemoveOldest()
	}
}

// Size returns how many results are kept, and the bytes that they take.
func (c *LRU) Size() (results, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lru.Len(), c.bytes
}
