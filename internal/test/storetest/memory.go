package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Memory is a [idempotency.Store] in the memory of the process, for tests and simulations. Records expire when
// [Memory.Expire] is called. It keeps a log of all records, and the sequence of the newest one of each key, as the stream
// of a bucket does.
type Memory struct {
	mu      sync.Mutex
	records []idempotency.Record // by sequence, from 1
	keys    map[string]uint64
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{keys: map[string]uint64{}} }

// Create implements [idempotency.Store].
func (m *Memory) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq := m.keys[r.Key]; seq != r.Seq {
		return 0, &idempotency.ExistsError{Key: r.Key, Seq: seq}
	}
	if r.Seq > 0 {
		m.records[r.Seq-1] = idempotency.Record{Seq: r.Seq} // a deleted message: nothing reads it
	}
	r.Data = slices.Clone(r.Data)
	r.Seq, r.Time = uint64(len(m.records)+1), time.Now().UTC()
	m.records = append(m.records, r)
	m.keys[r.Key] = r.Seq
	return r.Seq, nil
}

// Expire removes all records up to a sequence, as the retention of a bucket does.
func (m *Memory) Expire(last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.records[:min(last, uint64(len(m.records)))] {
		r := &m.records[n]
		if m.keys[r.Key] == r.Seq {
			delete(m.keys, r.Key)
		}
		*r = idempotency.Record{Seq: r.Seq}
	}
}

// At implements [idempotency.Store].
func (m *Memory) At(ctx context.Context, seq uint64) (idempotency.Record, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq == 0 || seq > uint64(len(m.records)) {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	if m.records[seq-1].Key == "" {
		return idempotency.Record{}, idempotency.ErrNotFound
	}
	return m.records[seq-1], nil
}

// Last implements [idempotency.Store]. Of a filter whose last token is [idempotency.AnyToken] it returns the last record that matches.
func (m *Memory) Last(ctx context.Context, key string) (idempotency.Record, error) {
	m.mu.Lock()
	seq := m.keys[key]
	if prefix, filter := strings.CutSuffix(key, idempotency.AnyToken); filter {
		for name, at := range m.keys {
			if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
				seq = max(seq, at)
			}
		}
	}
	m.mu.Unlock()
	return m.At(ctx, seq)
}

// LastOf implements [idempotency.Store].
func (m *Memory) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return LastOf(ctx, m.Last, keys)
}

// LastOf reads the last record of each key, one after the other: the LastOf of a store that has a Last.
func LastOf(ctx context.Context, last func(context.Context, string) (idempotency.Record, error), keys []string) ([]*idempotency.Record, error) {
	found := make([]*idempotency.Record, len(keys))
	for n, key := range keys {
		switch r, err := last(ctx, key); {
		case err == nil:
			found[n] = &r
		case !errors.Is(err, idempotency.ErrNotFound):
			return nil, err
		}
	}
	return found, nil
}

// Scan implements [idempotency.Store].
func (m *Memory) Scan(ctx context.Context, key subjects.Key, _ []idempotency.Record) ([]idempotency.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []idempotency.Record
	for _, r := range m.records {
		if of, ok := subjects.ParseKey(r.Key); ok && of.OfTurn() == key.OfTurn() && of.Call != subjects.Absent {
			found = append(found, r)
		}
	}
	return found, nil
}

// Erase implements [idempotency.Store].
func (m *Memory) Erase(ctx context.Context, r idempotency.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[r.Key] != r.Seq || r.Seq == 0 {
		return nil
	}
	gone := m.records[r.Seq-1].Erased()
	m.records[r.Seq-1] = idempotency.Record{Seq: r.Seq} // a deleted message: nothing reads it
	gone.Seq = uint64(len(m.records) + 1)
	m.records = append(m.records, gone)
	m.keys[gone.Key] = gone.Seq
	return nil
}
