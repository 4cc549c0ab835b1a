package query

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// A list of too many names is megabytes long: a caller that reads page by page must not request it repeatedly.
const (
	oversizedFor = time.Minute
	maxOversized = 1000 // filters that are remembered
)

// OversizedFilters remembers for a minute which filters match too many records. The zero value is usable,
// also concurrently.
type OversizedFilters struct {
	mu    sync.Mutex
	until map[string]time.Time // by filter
}

// Lister lists as list does, but fails with [idempotency.ErrTooMany] without calling it if that was the result recently.
func (c *OversizedFilters) Lister(list Lister) Lister {
	return func(ctx context.Context, filter string) ([]subjects.Record, error) {
		if c.has(filter) {
			return nil, idempotency.ErrTooMany
		}
		names, err := list(ctx, filter)
		if errors.Is(err, idempotency.ErrTooMany) {
			c.add(filter)
		}
		return names, err
	}
}

// has reports whether a filter is known to match too many records.
func (c *OversizedFilters) has(filter string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until[filter])
}

func (c *OversizedFilters) add(filter string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.until) >= maxOversized {
		clear(c.until)
	}
	if c.until == nil {
		c.until = map[string]time.Time{}
	}
	c.until[filter] = time.Now().Add(oversizedFor)
}
