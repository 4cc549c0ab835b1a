package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of the pages.
const (
	pageTurns = 500     // in a page: a key has 512 bytes at most
	pageNames = 1 << 16 // pages at a time: their names are used again
)

// SweepPages keeps what sweeps know of open turns. [KVPages] is the real one.
type SweepPages interface {
	// State returns the state that was committed last, the zero one if there is none.
	State(ctx context.Context) (SweepState, error)
	// Commit replaces the state that State has returned, or Commit has set; an error if another
	// sweep has.
	Commit(ctx context.Context, s SweepState) error
	Page(ctx context.Context, n uint64) (SweepPage, error)
	Put(ctx context.Context, n uint64, page SweepPage) error
	Drop(ctx context.Context, n uint64) error
}

// KVPages keeps pages and state in the bucket of context variables, where no chat has such keys.
// It is for one goroutine.
type KVPages struct {
	nc       *nats.Conn
	kv       jetstream.KeyValue
	revision uint64 // of the state
}

// NewSweepPages opens the pages of space. The bucket must exist.
func NewSweepPages(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*KVPages, error) {
	kv, err := js.KeyValue(ctx, space.ContextBucket())
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", space.ContextBucket(), err)
	}
	return &KVPages{nc: js.Conn(), kv: kv}, nil
}

// read asks the leader for the value of a key: a replica may lag.
func (p *KVPages) read(ctx context.Context, key string) (*storedMessage, error) {
	bucket := p.kv.Bucket()
	return leaderMessage(ctx, p.nc, "KV_"+bucket, fmt.Sprintf(`{"last_by_subj":%q}`, "$KV."+bucket+"."+key))
}

func pageKey(n uint64) string { return subjects.SweepKey(strconv.FormatUint(n%pageNames, 10)) }

// State implements [SweepPages]. What nobody can read counts as nothing: the journal is read again.
func (p *KVPages) State(ctx context.Context) (SweepState, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	m, err := p.read(ctx, subjects.SweepKey("state"))
	if errors.Is(err, idempotency.ErrNotFound) {
		p.revision = 0
		return SweepState{}, nil
	}
	if err != nil {
		return SweepState{}, fmt.Errorf("state of the sweeps: %w", err)
	}
	p.revision = m.Seq
	var s SweepState
	if err := json.Unmarshal(m.Data, &s); err != nil || s.Next < s.First || s.Next-s.First > pageNames {
		return SweepState{}, nil
	}
	return s, nil
}

// Commit implements [SweepPages].
func (p *KVPages) Commit(ctx context.Context, s SweepState) (err error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if p.revision, err = p.kv.Update(ctx, subjects.SweepKey("state"), jsonOf(s), p.revision); err != nil {
		return fmt.Errorf("state of the sweeps: %w", err)
	}
	return nil
}

// Page implements [SweepPages].
func (p *KVPages) Page(ctx context.Context, n uint64) (SweepPage, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	m, err := p.read(ctx, pageKey(n))
	if errors.Is(err, idempotency.ErrNotFound) {
		err = fmt.Errorf("%w: %w", errPageLost, err)
	}
	var page SweepPage
	if err == nil {
		page, err = decodePage(m.Data)
	}
	if err != nil {
		return SweepPage{}, fmt.Errorf("page %d of the open turns: %w", n, err)
	}
	return page, nil
}

// Put implements [SweepPages].
func (p *KVPages) Put(ctx context.Context, n uint64, page SweepPage) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if _, err := p.kv.Put(ctx, pageKey(n), jsonOf(page)); err != nil {
		return fmt.Errorf("page %d of the open turns: %w", n, err)
	}
	return nil
}

// Drop implements [SweepPages].
func (p *KVPages) Drop(ctx context.Context, n uint64) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	if err := p.kv.Purge(ctx, pageKey(n)); err != nil {
		return fmt.Errorf("page %d of the open turns: %w", n, err)
	}
	return nil
}

// MemoryPages forget when the process ends: for one sweep of a whole journal.
type MemoryPages struct {
	state SweepState
	pages map[uint64]SweepPage
}

// NewMemoryPages returns empty pages.
func NewMemoryPages() *MemoryPages { return &MemoryPages{pages: map[uint64]SweepPage{}} }

// State implements [SweepPages].
func (p *MemoryPages) State(context.Context) (SweepState, error) { return p.state, nil }

// Commit implements [SweepPages].
func (p *MemoryPages) Commit(_ context.Context, s SweepState) error {
	p.state = s
	return nil
}

// Page implements [SweepPages].
func (p *MemoryPages) Page(_ context.Context, n uint64) (SweepPage, error) { return p.pages[n], nil }

// Put implements [SweepPages].
func (p *MemoryPages) Put(_ context.Context, n uint64, page SweepPage) error {
	p.pages[n] = page
	return nil
}

// Drop implements [SweepPages].
func (p *MemoryPages) Drop(_ context.Context, n uint64) error {
	delete(p.pages, n)
	return nil
}
