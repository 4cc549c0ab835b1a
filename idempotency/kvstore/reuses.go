package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Reuses returns the keys of the turns that ran under a key, run id and turn key, though it was
// used before with other data, as the leader knows them. It fails with [idempotency.ErrTooMany] if there
// are more than most.
func (s *Store) Reuses(ctx context.Context, key subjects.Key, run, turn string, most int) ([]subjects.Key, error) {
	return s.ListReuses(ctx, s.Names, key, run, turn, most)
}

// ListReuses is Reuses by a lister of names.
func (s *Store) ListReuses(ctx context.Context, list Lister, key subjects.Key, run, turn string, most int) ([]subjects.Key, error) {
	notes, err := list(ctx, key.ReuseNotes())
	if err != nil {
		return nil, err
	}
	reuses := make([]subjects.Key, 0, min(len(notes), most))
	for _, note := range notes {
		switch r, err := s.Last(ctx, note.Name()); {
		case errors.Is(err, idempotency.ErrNotFound): // it has just expired
		case err != nil:
			return nil, err
		case r.Meta.Outcome == idempotency.OutcomePlainKey:
		case len(reuses) == most:
			return nil, fmt.Errorf("journal: more than %d turns under turn key %.80q: %w", most, turn, idempotency.ErrTooMany)
		default:
			reuses = append(reuses, key.Reuse(run, turn, note.ID))
		}
	}
	return reuses, nil
}
