package idempotency

import (
	"context"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/subjects"
)

// Names returns the names of the records that match a filter, as the leader knows them, in the
// order of the names. It reads none of the records: the server keeps their names in an index. It
// fails with [ErrTooMany] beyond 10,000 of them.
func (s *KV) Names(ctx context.Context, filter string) ([]subjects.Record, error) {
	names, _, err := s.names(ctx, filter)
	if err != nil {
		return nil, err
	}
	found := make([]subjects.Record, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key, _ := s.space.JournalKeyOf(name)
		if r, ok := subjects.ParseKey(key); ok {
			found = append(found, r)
		}
	}
	return found, nil
}
