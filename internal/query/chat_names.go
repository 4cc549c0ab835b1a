package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
)

const (
	// namesFor is how long the names of a chat are remembered: while its pages are read.
	namesFor = 10 * time.Second
	// mostListed bounds the names that are remembered, some 10 MB. All are forgotten together.
	mostListed = 100_000
)

// listed are the names of the records of a chat.
type listed struct {
	subjects []string
	through  uint64 // last sequence of the journal before they were listed
	at       time.Time
	known    map[string]uint64 // sequences of some of them
}

// listedNames remembers them by the filters of chats.
type listedNames struct {
	mu    sync.Mutex
	chats map[string]listed
	names int
}

func (l *listedNames) get(filter string, upTo uint64) (listed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.chats[filter]
	return found, ok && found.through >= upTo && time.Since(found.at) < namesFor
}

func (l *listedNames) put(filter string, found listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names += len(found.subjects) - len(l.chats[filter].subjects)
	if l.names > mostListed || l.chats == nil {
		l.chats, l.names = map[string]listed{}, len(found.subjects)
	}
	l.chats[filter] = found
}

// found remembers where records of a chat are that were read from a copy. What a copy that lags has may have been replaced before the
// names were listed.
func (l *listedNames) found(filter string, records []jsapi.LastMessage, copyUpTo uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, ok := l.chats[filter]
	if !ok || copyUpTo < list.through {
		return
	}
	for i := range records {
		list.known[records[i].Subject] = records[i].Seq
	}
}

// after returns the subjects of a list that are not known to have sequences up to after.
func (l *listedNames) after(list listed, after uint64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []string
	for _, name := range list.subjects {
		if seq, known := list.known[name]; !known || seq > after {
			left = append(left, name)
		}
	}
	return left
}

// list lists the names of a chat. The server finds them without the names of others, so a tenant is charged only where there are many.
func (r *Reader) list(ctx context.Context, app, filter string, upTo uint64) (listed, error) {
	begun := time.Now()
	info, err := jsapi.Info(ctx, r.nc, r.space.TurnsStream(), r.space.JournalSubject(filter), 0)
	if err != nil {
		return listed{}, fmt.Errorf("list the records of a chat: %w", err)
	}
	if len(info.State.Subjects) > batchNames {
		r.budget.Charge(ctx, app, time.Since(begun))
	}
	switch {
	case len(info.State.Subjects) > maxNames:
		r.oversized.add(filter)
		return listed{}, fmt.Errorf("%s has over %d records: %w", filter, maxNames, idempotency.ErrTooMany)
	case info.State.LastSeq < upTo:
		return listed{}, fmt.Errorf("list the records of a chat up to %d: the journal ends at %d: %w", upTo, info.State.LastSeq, idempotency.ErrStale)
	}
	return listed{
		subjects: slices.Collect(maps.Keys(info.State.Subjects)), through: info.State.LastSeq, at: begun, known: map[string]uint64{},
	}, nil
}

// namesAfter returns the subjects of the records of a chat, as the leader lists them, without those that are known to have sequences
// up to after. They include every record up to upTo. It fails with [idempotency.ErrTooMany] beyond 10,000.
func (r *Reader) namesAfter(ctx context.Context, app, filter string, after, upTo uint64) ([]string, error) {
	found, ok := r.listed.get(filter, upTo)
	if !ok {
		if r.oversized.has(filter) {
			return nil, idempotency.ErrTooMany
		}
		var err error
		if found, err = r.list(ctx, app, filter, upTo); err != nil {
			return nil, err
		}
		r.listed.put(filter, found)
	}
	return r.listed.after(found, after), nil
}
