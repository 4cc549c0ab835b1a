package idempotency

import (
	"context"

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
