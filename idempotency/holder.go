package idempotency

import (
	"context"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// What decides who holds a turn, and whether it has ended, has few records. They are read by their names, at a
// fraction of the cost of a [Journal.Load], which has the server list the names of all.

// Claims returns the claim of each turn, nil for one that is not claimed, as the leader knows them.
func (j *Journal) Claims(ctx context.Context, keys ...subjects.Key) ([]*Record, error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Public(events.RecordCall)
	}
	return j.store.LastOf(ctx, names)
}

// Leases returns the leases under which turns are owned, those of their newest epochs, as the leader knows
// them. Turns that are not claimed have none.
func (j *Journal) Leases(ctx context.Context, keys ...subjects.Key) ([]Lease, error) {
	claims, err := j.Claims(ctx, keys...)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		records := []Record{*claim}
		switch takeover, err := j.last(ctx, keys[i].Private(events.RecordTakeover, AnyToken)); {
		case err != nil:
			return nil, err
		case takeover != nil && !takeover.Former(lifeOf(claim)):
			records = append(records, *takeover)
		}
		leases = append(leases, newTurn(keys[i], records).Lease)
	}
	return leases, nil
}

// Ended reports whether a turn has its response, as the leader knows it.
func (j *Journal) Ended(ctx context.Context, key subjects.Key) (bool, error) {
	response, err := j.ofThisLife(ctx, key, key.Public(events.RecordResponse))
	return response != nil, err
}

// ofThisLife returns a record of a turn by its name, as the leader knows it; nil if there is none, or only that of a
// former life.
func (j *Journal) ofThisLife(ctx context.Context, key subjects.Key, name string) (*Record, error) {
	found, err := j.store.LastOf(ctx, []string{key.Public(events.RecordCall), name})
	if err != nil || found[1] == nil || found[1].Former(lifeOf(found[0])) {
		return nil, err
	}
	return found[1], nil
}
