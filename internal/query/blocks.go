package query

// The server keeps the journal in blocks of some megabytes. To read one record of a block that was not used for a while, it loads the
// whole block and goes through all its records. Meanwhile a read by sequence holds the lock of the block, but a read by name holds the
// lock of the journal, so nothing can be stored. Therefore the blocks of a chat are loaded by sequence first, and then read by name.

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
)

const (
	// loadStep is how many records apart the reads that load the journal are: a block has more records of the usual size.
	loadStep        = 2_000
	concurrentLoads = 2 // reads for all chats together
	loadsPerPage    = 8 // reads before each page of a chat that is loaded
	// blocksFor is how long the server keeps the names of a loaded block after their last use, at least. It keeps the records for
	// ten seconds, if it has the memory.
	blocksFor = time.Minute
	// maxLoadedChats bounds the chats that are remembered as loaded.
	maxLoadedChats = 10_000
	// quickRead is how long a read takes at most if nothing has to be loaded; maxSpace bounds the pause after a longer one.
	quickRead = 10 * time.Millisecond
	maxSpace  = 200 * time.Millisecond
)

// reads bounds the concurrent reads of histories.
type reads struct {
	loads  chan struct{} // holds one for each read by sequence
	locked chan struct{} // holds one during a read under the lock of the journal
	free   time.Time     // the next read under that lock begins then, not earlier; the holder of locked owns the field
}

func newReads() *reads {
	return &reads{loads: make(chan struct{}, concurrentLoads), locked: make(chan struct{}, 1)}
}

// spaced makes a read that holds the lock of the journal, after the one before has ended. After a read for which the server loaded a
// block, it leaves the lock to writers for twice as long: without a pause they get it for a single record between two reads.
func (r *reads) spaced(ctx context.Context, read func() error) error {
	select {
	case r.locked <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.locked }()
	if err := pause.For(ctx, time.Until(r.free)); err != nil {
		return err
	}
	begun := time.Now()
	err := read()
	if took := time.Since(begun); took > quickRead {
		r.free = time.Now().Add(min(2*took, maxSpace))
	}
	return err
}

// load has the server load the blocks of the journal with the records of a chat. For a chat that is loaded it loads the blocks of the
// next page again, since the server may have dropped them. It fails with errNoBatch if the records are too far apart.
func (r *Reader) load(ctx context.Context, filter string, after, upTo uint64) error {
	if r.loaded.Has(filter, time.Now()) {
		return r.loadBetween(ctx, after+1, min(upTo, after+loadsPerPage*loadStep))
	}
	subject := r.space.JournalSubject(filter)
	last, err := r.find(ctx, jsapi.Get{Last: subject})
	if err != nil {
		return err
	}
	first, err := r.find(ctx, jsapi.Get{Seq: 1, Next: subject}) // the server knows the first record of a filter only from the beginning of the journal on
	if err != nil {
		return err
	}
	end := min(last, upTo)
	if end > first && end-first > searchMost {
		return errNoBatch
	}
	if err := r.loadBetween(ctx, first+loadStep, end); err != nil {
		return err
	}
	r.loaded.Add(filter, time.Now())
	return nil
}

// find returns the sequence of a record. Any replica may answer. The reads are spaced, so they count for no tenant's budget.
func (r *Reader) find(ctx context.Context, get jsapi.Get) (seq uint64, err error) {
	err = r.reads.spaced(ctx, func() error {
		seq, err = jsapi.Find(ctx, r.nc, r.space.TurnsStream(), get)
		return err
	})
	return seq, err
}

// loadBetween reads every loadStep-th record by its sequence, which needs no lock of the journal.
func (r *Reader) loadBetween(ctx context.Context, first, end uint64) error {
	var reads errgroup.Group
	reads.SetLimit(cap(r.reads.loads))
	for seq := first; seq < end; seq += loadStep {
		reads.Go(func() error {
			select {
			case r.reads.loads <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			defer func() { <-r.reads.loads }()
			_, err := jsapi.Find(ctx, r.nc, r.space.TurnsStream(), jsapi.Get{Seq: seq})
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				err = nil
			}
			return err
		})
	}
	return reads.Wait() //nolint:wrapcheck // the error of the read
}
