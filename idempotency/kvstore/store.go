// Package kvstore keeps the turn journal in a JetStream KV bucket. It implements [idempotency.Store]: a record is created
// once, and read from the leader of the bucket's stream, never from a replica that may lag.
//
//	store.go             Open, Read, Create: the answers of the server as the errors of a store
//	publisher.go         publishes records and waits for their acknowledgements
//	read.go              reads by sequence, by name and of a whole call; lists names
//	erase.go             overwrites secrets
//	bucket_check.go      detects that the bucket was deleted or created again
//	failpoint.go         where tests drop a create or its acknowledgement
package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/subjects"
)

// Store is the [idempotency.Store] in a JetStream KV bucket. It creates records by publishing to the key's
// subject with an expected last sequence, 0 for a key that is free, and reads through the stream's
// leader, never through a replica that may lag.
type Store struct {
	nc     *nats.Conn
	space  subjects.Space
	pub    *publisher // nil: only for reading
	bucket *bucket
}

// Open returns the store in the bucket of space. The bucket must exist (turnctl provision
// makes it). The connection should be made with ReconnectBufSize(-1), so that no record is
// sent long after it was given up. Close ends its subscriptions.
func Open(nc *nats.Conn, space subjects.Space) (*Store, error) {
	pub, err := newPublisher(nc)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	s := Read(nc, space)
	s.pub = pub
	return s, nil
}

// Read returns the store for reading: it makes no subscription, needs no Close, and creates nothing.
func Read(nc *nats.Conn, space subjects.Space) *Store {
	return &Store{nc: nc, space: space, bucket: newBucket(space.TurnsBucket())}
}

// Close releases the subscriptions. Creates in flight end as unknown.
func (s *Store) Close() {
	if s.pub != nil {
		s.pub.close()
	}
}

// Create implements [idempotency.Store].
func (s *Store) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if failpoint.Enabled {
		return createAtFailpoint(ctx, s, r)
	}
	return s.create(ctx, r)
}

func (s *Store) create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if s.pub == nil {
		return 0, fmt.Errorf("journal: create %s: the store is open for reading only", r.Key)
	}
	if limit := s.nc.MaxPayload(); limit > 0 && int64(len(r.Data)) > limit-4096 {
		return 0, fmt.Errorf("%w: %s has %d bytes, the server takes %d", idempotency.ErrRefused, r.Key, len(r.Data), limit)
	}
	if err := s.bucket.Err(); err != nil {
		return 0, err
	}
	before := s.bucket.last.Load()
	ack, err := s.pub.create(ctx, s.space.JournalSubject(r.Key), r.Seq, &r.Meta, r.Data)
	switch {
	case errors.Is(err, nats.ErrNoResponders) && s.checkSometimes(ctx) != nil:
		return 0, s.bucket.Err()
	case err != nil:
		return 0, fmt.Errorf("journal: create %s: %w", r.Key, err)
	case ack.code == 0:
		return ack.seq, s.stored(ctx, before, ack.seq)
	case ack.code == jetstream.JSErrCodeStreamWrongLastSequence && (ack.seq > 0 || r.Seq > 0):
		return 0, &idempotency.ExistsError{Key: r.Key, Seq: ack.seq}
	case ack.code == jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return 0, idempotency.ErrUndecided
	case ack.code == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return 0, fmt.Errorf("%w: %s: %s", idempotency.ErrRefused, r.Key, ack.text)
	}
	return 0, fmt.Errorf("journal: create %s: server error %d: %s", r.Key, ack.code, ack.text)
}
