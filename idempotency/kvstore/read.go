package kvstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

func (s *Store) read(ctx context.Context, get jsapi.Get) (idempotency.Record, error) {
	m, err := jsapi.Read(ctx, s.nc, s.space.TurnsStream(), get)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return idempotency.Record{}, idempotency.ErrNotFound
	case err != nil:
		return idempotency.Record{}, fmt.Errorf("journal: %w", err)
	}
	key, _ := s.space.JournalKeyOf(m.Subject)
	r := idempotency.Record{Key: key, Data: m.Data, Seq: m.Seq, Time: m.Time}
	header, err := m.Header()
	if err == nil {
		r.Meta, err = idempotency.ParseMeta(header.Get)
	}
	r.Err = err
	return r, nil
}

// At implements [idempotency.Store].
func (s *Store) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	return s.read(ctx, jsapi.Get{Seq: seq})
}

// Last implements [idempotency.Store]. Of a filter with wildcards it returns the last record that matches.
func (s *Store) Last(ctx context.Context, key string) (idempotency.Record, error) {
	return s.read(ctx, jsapi.Get{Last: s.space.JournalSubject(key)})
}

// Next returns the first record from sequence `from` on whose key matches the filter, as the
// leader knows it, or ErrNotFound.
func (s *Store) Next(ctx context.Context, filter string, from uint64) (idempotency.Record, error) {
	return s.read(ctx, jsapi.Get{Seq: max(from, 1), Next: s.space.JournalSubject(filter)})
}

// maxScan bounds how many records of one call are read: a turn has a handful, a call with
// many questions and steps some hundreds.
const maxScan = 10_000

// Scan implements [idempotency.Store]. It asks for the names of the call's records, which the server
// keeps in an index, and reads each by its name: looking for "the next one" until there is
// none would search the journal to its end.
func (s *Store) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	for range maxScans {
		found, complete, err := s.scan(ctx, key, known)
		if err != nil || complete {
			return found, err
		}
		known = found
	}
	return nil, fmt.Errorf("journal: read %s: records that are listed are not found: %w", key, idempotency.ErrStale)
}

// names returns the subjects of the journal that match a filter, as the leader knows them.
func (s *Store) names(ctx context.Context, filter string) (map[string]uint64, error) {
	info, err := jsapi.Info(ctx, s.nc, s.space.TurnsStream(), s.space.JournalSubject(filter), 0)
	switch {
	case err != nil:
		return nil, fmt.Errorf("journal: names of %s: %w", filter, err)
	case len(info.State.Subjects) > maxScan:
		return nil, fmt.Errorf("journal: %s has over %d records: %w", filter, maxScan, idempotency.ErrTooMany)
	}
	return info.State.Subjects, nil
}

// maxReads is how many records are read at the same time.
const maxReads = 16

// LastOf implements [idempotency.Store].
func (s *Store) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	found := make([]*idempotency.Record, len(keys))
	var reads errgroup.Group
	reads.SetLimit(maxReads)
	for n, key := range keys {
		reads.Go(func() error {
			r, err := s.Last(ctx, key)
			switch {
			case err == nil:
				found[n] = &r
			case errors.Is(err, idempotency.ErrNotFound):
				err = nil
			}
			return err
		})
	}
	return found, reads.Wait() //nolint:wrapcheck // the error of the read
}

// maxScans bounds how often the records of a turn are listed because one that was listed is gone:
// it has just expired, or a server that is no longer the leader does not have it.
const maxScans = 3

// scan is one try of Scan. It reports whether all records that were listed are found.
func (s *Store) scan(ctx context.Context, key subjects.Key, known []idempotency.Record) (found []idempotency.Record, complete bool, err error) {
	names, err := s.names(ctx, key.TurnRecords())
	if err != nil {
		return nil, false, err
	}
	found = make([]idempotency.Record, 0, len(names))
	for _, r := range known {
		subject := s.space.JournalSubject(r.Key)
		if _, there := names[subject]; there && r.Meta.Secret == "" && r.Err == nil { // a secret is erased one day
			found = append(found, r)
			delete(names, subject)
		}
	}
	unread := make([]string, 0, len(names))
	for name := range names {
		key, _ := s.space.JournalKeyOf(name)
		if k, ok := subjects.ParseKey(key); ok && k.Call != subjects.Absent { // those are of the turn key
			unread = append(unread, key)
		}
	}
	read, err := s.LastOf(ctx, unread)
	if err != nil {
		return nil, false, err
	}
	complete = true
	for _, r := range read {
		if complete = complete && r != nil; r != nil {
			found = append(found, *r)
		}
	}
	slices.SortFunc(found, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, complete, nil
}

// Names returns the names of the records that match a filter, as the leader knows them, in the
// order of the names. It reads none of the records: the server keeps their names in an index. It
// fails with [idempotency.ErrTooMany] beyond 10,000 of them.
func (s *Store) Names(ctx context.Context, filter string) ([]subjects.Record, error) {
	names, err := s.names(ctx, filter)
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
