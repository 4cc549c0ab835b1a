package idempotency

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Asked returns the record of a question, as the leader knows it, or [ErrNotFound]. Token is that
// of its id. The record never changes: whoever has it needs no second look.
func (j *Journal) Asked(ctx context.Context, key subjects.Key, token string) (Record, error) {
	question, err := j.ofThisLife(ctx, key, key.Public(events.RecordAsk, token))
	switch {
	case err != nil:
		return Record{}, err
	case question == nil:
		return Record{}, ErrNotFound
	}
	return *question, nil
}
