package query

import (
	"context"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Owner returns the user that a chat, an id, belongs to: of the first of its turns and messages that names one, "" if
// none does yet. A chat keeps its owner while that record is stored.
func (r *Reader) Owner(ctx context.Context, app, chat string) (string, error) {
	records := subjects.Key{App: app, Chat: subjects.Token(chat), Turn: idempotency.AnyToken, Call: subjects.SingleCall}
	turns, err := r.firstNamed(ctx, app, records.Public(events.RecordCall), func(data []byte) (string, error) {
		call, err := events.ReadCall(data)
		if err != nil {
			return "", err
		}
		return call.UserID, nil
	})
	if err != nil {
		return "", err
	}
	messages, err := r.firstNamed(ctx, app, records.Public(events.RecordText), func(data []byte) (string, error) {
		text, err := events.ReadText(data)
		if err != nil {
			return "", err
		}
		return text.UserID, nil
	})
	if err != nil {
		return "", err
	}
	if turns.user == "" || messages.user != "" && messages.seq < turns.seq {
		return messages.user, nil
	}
	return turns.user, nil
}

// named is the first record of a filter that names a user.
type named struct {
	user string
	seq  uint64
}

// firstNamed finds it. Records that were read and name none are not read again.
func (r *Reader) firstNamed(ctx context.Context, app, filter string, userOf func(data []byte) (string, error)) (found named, err error) {
	through := r.unnamed.through(filter)
	err = r.each(ctx, app, filter, through+1, func(rec *idempotency.Record, _ bool) (bool, error) {
		through = rec.Seq
		if rec.Damaged() {
			return true, nil
		}
		if user, err := userOf(rec.Data); err == nil && user != "" { // a damaged one names none
			found = named{user, rec.Seq}
			return false, nil
		}
		return true, nil
	})
	if found.user == "" {
		r.unnamed.note(filter, through)
	}
	return found, err
}

// maxUnnamed bounds the filters of an [unnamed]. It forgets all of them at the same time.
const maxUnnamed = 10_000

// unnamed remembers up to which sequence the records of a filter name no user: every chat of a producer that names none
// would be read from its beginning each time. The zero value is usable.
type unnamed struct {
	mu   sync.Mutex
	upTo map[string]uint64
}

func (u *unnamed) through(filter string) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.upTo[filter]
}

func (u *unnamed) note(filter string, through uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.upTo == nil || len(u.upTo) >= maxUnnamed {
		u.upTo = map[string]uint64{}
	}
	u.upTo[filter] = max(through, u.upTo[filter])
}
