package idempotency

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/subjects"
)

// Memory is a [Store] in the memory of the process, for tests and simulations. Records expire when
// [Memory.Expire] is called.
type Memory struct {
	mu      sync.Mutex
	records []Record // by sequence, from 1
	keys    map[string]uint64
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{keys: map[string]uint64{}} }

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, r Record) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq := m.keys[r.Key]; seq != r.Seq {
		return 0, &ExistsError{Key: r.Key, Seq: seq}
	}
	if r.Seq > 0 {
		m.records[r.Seq-1] = Record{Seq: r.Seq} // a deleted message: nothing reads it
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
		*r = Record{Seq: r.Seq}
	}
}

// At implements [Store].
func (m *Memory) At(ctx context.Context, seq uint64) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq == 0 || seq > uint64(len(m.records)) {
		return Record{}, ErrNotFound
	}
	if m.records[seq-1].Key == "" {
		return Record{}, ErrNotFound
	}
	return m.records[seq-1], nil
}

// Last implements [Store]. Of a filter whose last token is [AnyToken] it returns the last record that matches.
func (m *Memory) Last(ctx context.Context, key string) (Record, error) {
	m.mu.Lock()
	seq := m.keys[key]
	if prefix, filter := strings.CutSuffix(key, AnyToken); filter {
		for name, at := range m.keys {
			if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, ".") {
				seq = max(seq, at)
			}
		}
	}
	m.mu.Unlock()
	return m.At(ctx, seq)
}

// Scan implements [Store].
func (m *Memory) Scan(ctx context.Context, key subjects.Key) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	public, private := strings.TrimSuffix(key.PublicRecords(), ">"), strings.TrimSuffix(key.PrivateRecords(), ">")
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Record
	for _, r := range m.records {
		if strings.HasPrefix(r.Key, public) || strings.HasPrefix(r.Key, private) {
			found = append(found, r)
		}
	}
	return found, nil
}
