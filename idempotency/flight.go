package idempotency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/subjects"
)

// Flights is what a [Store] may do besides, so that who goes on with a turn waits for few round
// trips. What it reads is what [Store.Last] and [Store.Scan] would.
type Flights interface {
	// Lasts returns the record under each key, nil where there is none. They are read at the same
	// time, in no order.
	Lasts(ctx context.Context, keys []string) ([]*Record, error)
	// Rescan is Scan by a caller who knows the records of an earlier scan: those that never change
	// are not read again.
	Rescan(ctx context.Context, key subjects.Key, known []Record) ([]Record, error)
}

// maxReads is how many records are read at the same time.
const maxReads = 16

// Lasts implements [Flights].
func (s *KV) Lasts(ctx context.Context, keys []string) ([]*Record, error) {
	found := make([]*Record, len(keys))
	var reads errgroup.Group
	reads.SetLimit(maxReads)
	for n, key := range keys {
		reads.Go(func() error {
			r, err := s.Last(ctx, key)
			switch {
			case err == nil:
				found[n] = &r
			case errors.Is(err, ErrNotFound):
				err = nil
			}
			return err
		})
	}
	return found, reads.Wait() //nolint:wrapcheck // that of the read
}

// maxScans bounds how often the records of a turn are listed because one that was listed is gone:
// it has just expired, or a server that is no longer the leader does not have it.
const maxScans = 3

// Rescan implements [Flights].
func (s *KV) Rescan(ctx context.Context, key subjects.Key, known []Record) ([]Record, error) {
	for range maxScans {
		found, complete, err := s.rescan(ctx, key, known)
		if err != nil || complete {
			return found, err
		}
		known = found
	}
	return nil, fmt.Errorf("journal: read %s: records that are listed are not found: %w", key, errStale)
}

// rescan is one try of Rescan. It reports whether all records that were listed are found.
func (s *KV) rescan(ctx context.Context, key subjects.Key, known []Record) (found []Record, complete bool, err error) {
	names, _, err := s.names(ctx, key.Records())
	if err != nil {
		return nil, false, err
	}
	found = make([]Record, 0, len(names))
	for _, r := range known {
		subject := s.space.JournalSubject(r.Key)
		if _, there := names[subject]; there && r.Meta.Secret == "" && r.Err == nil { // a secret is erased one day
			found = append(found, r)
			delete(names, subject)
		}
	}
	unread := make([]string, 0, len(names))
	for name := range names {
		if key, ok := s.space.JournalKeyOf(name); ok {
			unread = append(unread, key)
		}
	}
	read, err := s.Lasts(ctx, unread)
	if err != nil {
		return nil, false, err
	}
	complete = true
	for _, r := range read {
		if complete = complete && r != nil; r != nil {
			found = append(found, *r)
		}
	}
	slices.SortFunc(found, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, complete, nil
}

// lasts reads the records under some keys, in one flight if the store can.
func lasts(ctx context.Context, s Store, keys []string) ([]*Record, error) {
	if f, ok := s.(Flights); ok {
		return f.Lasts(ctx, keys)
	}
	found := make([]*Record, len(keys))
	for n, key := range keys {
		switch r, err := s.Last(ctx, key); {
		case err == nil:
			found[n] = &r
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	return found, nil
}
