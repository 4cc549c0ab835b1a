package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGone says that the journal's bucket does not exist any more, or has been made anew since
// the store began to use it. Nothing is stored after that: a new bucket has forgotten who owns
// what, and would run old turns again (design 5.9). The worker has to end.
var ErrGone = errors.New("the journal is gone")

const (
	errCodeNoStream = 10059

	// checkEvery is the least time between two looks for the bucket of a store whose writes
	// nobody answers; an election is such a time too.
	checkEvery = 500 * time.Millisecond

	// missingFor is how long a stream has to be missing. A cluster that has just started may
	// deny for a moment what it is about to find.
	missingFor = time.Second
)

// bucket is what a store knows of its bucket, to tell it from another one of the same name.
type bucket struct {
	name    string
	made    atomic.Int64  // Unix nanoseconds by the server, 0 before the first look
	last    atomic.Uint64 // highest sequence that was seen
	checked atomic.Int64  // time of the last look, nanoseconds since start
	missing atomic.Int64  // time of the first look that did not find it, 0 when the last one did
	start   time.Time

	lost sync.Once
	gone chan struct{} // closed once the bucket is
	why  error         // set before gone is closed
}

func newBucket(name string) *bucket {
	return &bucket{name: name, start: time.Now(), gone: make(chan struct{})}
}

func (b *bucket) now() int64 { return int64(time.Since(b.start)) + 1 }

// err is nil as long as nothing is wrong.
func (b *bucket) err() error {
	select {
	case <-b.gone:
		return b.why
	default:
		return nil
	}
}

// What to do about it.
const (
	mendGone = "stop every worker; then restore it from a backup, or delete the inbound stream too and run `turnctl provision`"
	mendLost = "what it forgot may happen again; start the worker again to go on without it"
)

// lose remembers for good that the bucket is gone.
func (b *bucket) lose(what, mend string) error {
	b.lost.Do(func() {
		b.why = fmt.Errorf("journal %s: %s: %w: %s", b.name, what, ErrGone, mend)
		close(b.gone)
	})
	return b.why
}

// stored notes the sequence of a record that was just stored. Before is the highest that was
// seen when it was sent: sequences only grow, so a lower one was given by another bucket, or
// by one that has lost records.
func (s *KV) stored(ctx context.Context, before, seq uint64) error {
	if seq > before {
		s.bucket.saw(seq)
		return nil
	}
	if err := s.Check(ctx); err != nil {
		return err
	}
	return s.bucket.lose(fmt.Sprintf("a record was stored as %d after %d: it has lost records", seq, before), mendLost)
}

func (b *bucket) saw(seq uint64) {
	for {
		last := b.last.Load()
		if seq <= last || b.last.CompareAndSwap(last, seq) {
			return
		}
	}
}

// notFound notes that the server knows no such stream.
func (b *bucket) notFound() error {
	now := b.now()
	if !b.missing.CompareAndSwap(0, now) && now-b.missing.Load() >= int64(missingFor) {
		return b.lose("its stream does not exist any more", mendGone)
	}
	return b.err()
}

// found holds the bucket that is there now against the one that was there at first.
func (b *bucket) found(made time.Time) error {
	b.missing.Store(0)
	if at := made.UnixNano(); !b.made.CompareAndSwap(0, at) && b.made.Load() != at {
		return b.lose("it was made anew at "+made.Format(time.RFC3339), mendGone)
	}
	return b.err()
}

// Gone is closed when the bucket is gone for good; Err says why.
func (s *KV) Gone() <-chan struct{} { return s.bucket.gone }

// Err is nil, or [ErrGone] once the bucket is gone for good.
func (s *KV) Err() error { return s.bucket.err() }

// Check asks the server whether the bucket is still the one that the first call found. The
// error is [ErrGone] if it is not, and stays so. A server that cannot be reached is not a
// reason.
func (s *KV) Check(ctx context.Context) error {
	s.bucket.checked.Store(s.bucket.now())
	var info struct {
		Error   *apiError `json:"error"`
		Created time.Time `json:"created"`
		State   struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := s.ask(ctx, s.info, struct{}{}, &info); err != nil {
		return s.bucket.err()
	}
	switch {
	case info.Error == nil:
		if s.bucket.made.Load() == 0 {
			s.bucket.saw(info.State.Last)
		}
		return s.bucket.found(info.Created)
	case info.Error.Code == errCodeNoStream:
		return s.bucket.notFound()
	}
	return s.bucket.err()
}

// checkSometimes is Check, unless there was one just now.
func (s *KV) checkSometimes(ctx context.Context) error {
	now, last := s.bucket.now(), s.bucket.checked.Load()
	if now-last < int64(checkEvery) || !s.bucket.checked.CompareAndSwap(last, now) {
		return s.bucket.err()
	}
	return s.Check(ctx)
}
