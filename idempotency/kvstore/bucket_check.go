package kvstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/presence"
)

// A journal that was deleted, or created again under its name, has none of the claims of the old one and must not be
// used (docs/journal.md#rule-9). The store recognises it by three signs: the stream is missing in two checks, it was
// created at another time, or it stores a record under a lower sequence than before.

// checkEvery is the least time between two checks of the bucket while writes get no response, for example during an
// election.
const checkEvery = 500 * time.Millisecond

// bucket is what a store knows of its bucket, to distinguish it from another one with the same name.
type bucket struct {
	*presence.Watch

	last    atomic.Uint64 // highest sequence that was seen
	checked atomic.Int64  // time of the last check, nanoseconds since start
	start   time.Time
}

func newBucket(name string) *bucket {
	return &bucket{Watch: presence.New("journal "+name, idempotency.ErrGone), start: time.Now()}
}

func (b *bucket) now() int64 { return int64(time.Since(b.start)) + 1 }

// What to do about it.
const (
	fixGone = "stop every worker; then restore it from a backup, or delete the inbound stream too and run `turnctl provision`"
	fixLost = "what the lost records prevented may happen again; restart the worker to continue without them"
)

// stored notes the sequence of a record that was just stored. Before is the highest that was
// seen when it was sent: sequences only grow, so a lower one was given by another bucket, or
// by one that has lost records.
func (s *Store) stored(ctx context.Context, before, seq uint64) error {
	if seq > before {
		s.bucket.saw(seq)
		return nil
	}
	if err := s.Check(ctx); err != nil {
		return err
	}
	return s.bucket.Lose(fmt.Sprintf("a record was stored as %d after %d: it has lost records", seq, before), fixLost)
}

func (b *bucket) saw(seq uint64) {
	for {
		last := b.last.Load()
		if seq <= last || b.last.CompareAndSwap(last, seq) {
			return
		}
	}
}

// Gone is closed when the bucket is permanently gone; Err returns why.
func (s *Store) Gone() <-chan struct{} { return s.bucket.Gone() }

// MaybeGone reports whether the last check did not find the bucket: the next one, a second later,
// decides.
func (s *Store) MaybeGone() bool { return s.bucket.MaybeGone() }

// Err is nil, or [idempotency.ErrGone] once the bucket is permanently gone.
func (s *Store) Err() error { return s.bucket.Err() }

// Check asks the server whether the bucket is still the one that the first call found. The
// error is [idempotency.ErrGone] if it is not, and stays so. A server that cannot be reached is not a
// reason.
func (s *Store) Check(ctx context.Context) error {
	s.bucket.checked.Store(s.bucket.now())
	info, err := jsapi.Info(ctx, s.nc, s.space.TurnsStream(), "", 0)
	switch {
	case err == nil:
		if !s.bucket.Known() {
			s.bucket.saw(info.State.LastSeq)
		}
		return s.bucket.Found(info.Created, fixGone)
	case jsapi.Code(err) == jetstream.JSErrCodeStreamNotFound:
		return s.bucket.Missing(fixGone)
	}
	return s.bucket.Err()
}

// checkSometimes is Check, unless there was one just now.
func (s *Store) checkSometimes(ctx context.Context) error {
	now, last := s.bucket.now(), s.bucket.checked.Load()
	if now-last < int64(checkEvery) || !s.bucket.checked.CompareAndSwap(last, now) {
		return s.bucket.Err()
	}
	return s.Check(ctx)
}
