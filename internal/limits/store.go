package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/subjects"
)

// This file stores one time for each rate, until which its places are taken, in a bucket that all workers share.

// Errors of a [Store].
var (
	// ErrTaken means that another worker has written since.
	ErrTaken = errors.New("another worker has written in between")
	// ErrMissing means that there is no store, and that there will be none by itself.
	ErrMissing = errors.New("is missing")
)

// Store is what workers share: a time for each rate, and a clock. Other errors than [ErrTaken] and
// [ErrMissing] are tried again.
type Store interface {
	// Now reads the clock that counts for all.
	Now(ctx context.Context) (time.Time, error)
	// Load returns the time under a key and its revision; 0 when there is none.
	Load(ctx context.Context, key string) (until time.Time, revision uint64, err error)
	// Save replaces the time of a revision and returns the new one.
	Save(ctx context.Context, key string, until time.Time, revision uint64) (uint64, error)
}

// KV is the [Store] in a bucket. Make it with [NewKV].
type KV struct {
	js     jetstream.JetStream
	bucket string

	mu sync.Mutex
	kv jetstream.KeyValue // nil until it is needed
}

// NewKV returns the store of space. It does no I/O: the bucket is opened when it is needed.
func NewKV(js jetstream.JetStream, space subjects.Space) *KV {
	return &KV{js: js, bucket: space.LimitsBucket()}
}

// Now implements [Store]: it is the clock of the server that leads the bucket.
func (s *KV) Now(ctx context.Context) (time.Time, error) {
	stream, err := s.js.Stream(ctx, "KV_"+s.bucket)
	if err != nil {
		return time.Time{}, s.explain("look at", err)
	}
	return stream.CachedInfo().TimeStamp, nil
}

// record is what the bucket holds.
type record struct {
	Until time.Time `json:"until"`
}

// Load implements [Store]. An unreadable value counts as nothing.
func (s *KV) Load(ctx context.Context, key string) (time.Time, uint64, error) {
	kv, err := s.open(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	entry, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return time.Time{}, 0, nil
	}
	if err != nil {
		return time.Time{}, 0, s.explain("read from", err)
	}
	var r record
	if err := json.Unmarshal(entry.Value(), &r); err != nil {
		return time.Time{}, entry.Revision(), nil //nolint:nilerr // it is written again
	}
	return r.Until, entry.Revision(), nil
}

// Save implements [Store].
func (s *KV) Save(ctx context.Context, key string, until time.Time, revision uint64) (uint64, error) {
	kv, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	data, err := json.Marshal(record{until.UTC()})
	if err != nil {
		return 0, fmt.Errorf("encode a rate: %w", err)
	}
	if revision == 0 { // or deleted by hand: a create goes over what marks that
		revision, err = kv.Create(ctx, key, data)
	} else {
		revision, err = kv.Update(ctx, key, data, revision)
	}
	if err != nil {
		return 0, s.explain("write to", err)
	}
	return revision, nil
}

func (s *KV) open(ctx context.Context) (jetstream.KeyValue, error) {
	s.mu.Lock()
	kv := s.kv
	s.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	kv, err := s.js.KeyValue(ctx, s.bucket)
	if err != nil {
		return nil, s.explain("open", err)
	}
	s.mu.Lock()
	s.kv = kv
	s.mu.Unlock()
	return kv, nil
}

// explain names the bucket, and what its errors mean here.
func (s *KV) explain(what string, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("bucket %s %w: turnctl provision makes it", s.bucket, ErrMissing)
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return ErrTaken
	default:
		s.mu.Lock()
		s.kv = nil // opened again, which distinguishes a deleted bucket from a server that does not answer
		s.mu.Unlock()
		return fmt.Errorf("%s bucket %s: %w", what, s.bucket, err)
	}
}
