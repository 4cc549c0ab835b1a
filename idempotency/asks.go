package idempotency

import (
	"context"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/subjects"
)

// Asked returns the record of a question, as the leader knows it, or [ErrNotFound]. Token is that
// of its id. The record never changes: whoever has it needs no second look.
func (j *Journal) Asked(ctx context.Context, key subjects.Key, token string) (Record, error) {
	found, err := lasts(ctx, j.store, []string{key.Public(kindCall), key.Public(kindAsk, token)})
	switch {
	case err != nil:
		return Record{}, err
	case found[1] == nil || found[1].Former(lifeOf(found[0])):
		return Record{}, ErrNotFound
	}
	return *found[1], nil
}

// Askers returns the calls of a chat that have asked a question with this id, as the leader knows
// them: an id without its turn, such as "1", is one of many. The tenant is a token, chat and
// question are ids. It fails with [ErrTooMany] beyond 10,000.
func (s *KV) Askers(ctx context.Context, appToken, chat, ask string) ([]subjects.Key, error) {
	names, _, err := s.names(ctx, subjects.AskInChat(appToken, chat, ask))
	if err != nil {
		return nil, err
	}
	keys := make([]subjects.Key, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		journalKey, _ := s.space.JournalKeyOf(name)
		if r, ok := subjects.ParseKey(journalKey); ok {
			keys = append(keys, r.Key)
		}
	}
	return keys, nil
}
