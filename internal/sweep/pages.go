package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// This file stores what sweeps know of open turns: in the bucket of context variables for the sweeps of workers
// (KVPages), in memory for one sweep of a whole journal (MemoryPages). A KVPages acquires a page before it writes it, so
// that two sweeps at the same time do not overwrite each other's pages.

// Bounds of the pages.
const (
	pageTurns = 500     // in a page: a key has 512 bytes at most
	pageNames = 1 << 16 // pages at a time: their names are used again
)

// Pages keeps what sweeps know of open turns. [KVPages] is the real one.
type Pages interface {
	// State returns the state that was committed last, the zero one if there is none.
	State(ctx context.Context) (State, error)
	// Commit replaces the state that State has returned, or Commit has set; an error if another
	// sweep has.
	Commit(ctx context.Context, s State) error
	Page(ctx context.Context, n uint64) (Page, error)
	Put(ctx context.Context, n uint64, page Page) error
	Drop(ctx context.Context, n uint64) error
}

// slotBatch is how many pages a sweep acquires together.
const slotBatch = 4

// KVPages keeps pages and state in the bucket of context variables, where no chat has such keys.
// It is for one goroutine.
//
// Two sweeps may run at the same time, when the worker of one was paused. Neither overwrites a page of the
// other: before a page is written, the revision under its name is read and the state is committed again,
// unchanged. So no other sweep has committed that page by then, and one that commits it later has written
// another revision.
type KVPages struct {
	docs     store.Documents
	state    State
	revision uint64            // of the state
	slots    map[uint64]uint64 // revisions under the names of pages that are this sweep's to write
}

// OpenPages opens the pages of space. The bucket must exist.
func OpenPages(ctx context.Context, js jetstream.JetStream, space subjects.Space) (*KVPages, error) {
	bucket, err := store.OpenDocuments(ctx, js, space)
	if err != nil {
		return nil, err
	}
	return PagesIn(bucket), nil
}

// PagesIn returns the pages that are kept among other documents.
func PagesIn(docs store.Documents) *KVPages {
	return &KVPages{docs: docs, slots: map[uint64]uint64{}}
}

func pageKey(n uint64) string { return subjects.SweepKey(strconv.FormatUint(n%pageNames, 10)) }

// State implements [Pages]. A state that cannot be decoded counts as none: the journal is read again.
func (p *KVPages) State(ctx context.Context) (State, error) {
	p.state = State{}
	clear(p.slots)
	data, revision, err := p.docs.Read(ctx, subjects.SweepKey("state"))
	if err != nil {
		return State{}, fmt.Errorf("state of the sweeps: %w", err)
	}
	p.revision = revision
	var s State
	if err := json.Unmarshal(data, &s); err == nil && s.Next >= s.First && s.Next-s.First <= pageNames {
		p.state = s
	}
	return p.state, nil
}

// Commit implements [Pages].
func (p *KVPages) Commit(ctx context.Context, s State) error {
	revision, err := p.docs.Write(ctx, subjects.SweepKey("state"), events.JSONOf(s), p.revision)
	if err != nil {
		return fmt.Errorf("state of the sweeps: %w", err)
	}
	p.state, p.revision = s, revision
	return nil
}

// Page implements [Pages].
func (p *KVPages) Page(ctx context.Context, n uint64) (Page, error) {
	data, revision, err := p.docs.Read(ctx, pageKey(n))
	if err == nil && len(data) == 0 {
		err = errPageLost
	}
	var page Page
	if err == nil {
		p.slots[n] = revision
		page, err = decodePage(data)
	}
	if err != nil {
		return Page{}, fmt.Errorf("page %d of the open turns: %w", n, err)
	}
	return page, nil
}

// Put implements [Pages].
func (p *KVPages) Put(ctx context.Context, n uint64, page Page) error {
	if _, own := p.slots[n]; !own {
		if err := p.own(ctx, n); err != nil {
			return err
		}
	}
	return p.write(ctx, n, events.JSONOf(page))
}

// own acquires the next pages from n on: only this sweep writes them then.
func (p *KVPages) own(ctx context.Context, n uint64) error {
	slots := map[uint64]uint64{}
	for i := n; i < n+slotBatch; i++ {
		_, revision, err := p.docs.Read(ctx, pageKey(i))
		if err != nil {
			return fmt.Errorf("page %d of the open turns: %w", i, err)
		}
		slots[i] = revision
	}
	if err := p.Commit(ctx, p.state); err != nil {
		return err
	}
	maps.Copy(p.slots, slots)
	return nil
}

// Drop implements [Pages]: a page without turns takes no room.
func (p *KVPages) Drop(ctx context.Context, n uint64) error {
	if _, read := p.slots[n]; !read {
		return nil
	}
	return p.write(ctx, n, nil)
}

func (p *KVPages) write(ctx context.Context, n uint64, data []byte) error {
	revision, err := p.docs.Write(ctx, pageKey(n), data, p.slots[n])
	if err != nil {
		delete(p.slots, n)
		return fmt.Errorf("page %d of the open turns: %w", n, err)
	}
	p.slots[n] = revision
	return nil
}

// MemoryPages forget when the process ends: for one sweep of a whole journal.
type MemoryPages struct {
	state State
	pages map[uint64]Page
}

// NewMemoryPages returns empty pages.
func NewMemoryPages() *MemoryPages { return &MemoryPages{pages: map[uint64]Page{}} }

// State implements [Pages].
func (p *MemoryPages) State(context.Context) (State, error) { return p.state, nil }

// Commit implements [Pages].
func (p *MemoryPages) Commit(_ context.Context, s State) error {
	p.state = s
	return nil
}

// Page implements [Pages].
func (p *MemoryPages) Page(_ context.Context, n uint64) (Page, error) { return p.pages[n], nil }

// Put implements [Pages].
func (p *MemoryPages) Put(_ context.Context, n uint64, page Page) error {
	p.pages[n] = page
	return nil
}

// Drop implements [Pages].
func (p *MemoryPages) Drop(_ context.Context, n uint64) error {
	delete(p.pages, n)
	return nil
}
