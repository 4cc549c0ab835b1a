package query

// The server keeps the journal in blocks of some megabytes. One that nothing has used for a while it loads whole for a single record of it,
// and goes through all that it has. A read by sequence holds the lock of the block meanwhile; a read by name holds the lock of the journal, and
// nothing is stored. So the blocks of a chat are loaded by sequence, and then read by name.

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
	// loadStep is how many records apart the journal is read to load it: a block of the store has more of the usual size.
	loadStep   = 2_000
	loadAtOnce = 2 // reads of all chats together
	loadAgain  = 8 // reads before each page
	// loadedFor is how long the server keeps at least the names of a block that was loaded, after their last use. It keeps its records for
	// ten seconds, if it has the memory.
	loadedFor = time.Minute
	// mostLoaded bounds the chats that are remembered as loaded.
	mostLoaded = 10_000
	// quickRead is how long a read takes for which nothing is loaded; longestSpace bounds the pause after another one.
	quickRead    = 10 * time.Millisecond
	longestSpace = 200 * time.Millisecond
)

// reads bounds what histories ask of the server at the same time.
type reads struct {
	loads  chan struct{} // holds one for each read by sequence
	locked chan struct{} // holds one during a read under the lock of the journal
	free   time.Time     // until when that lock is left to writers; the holder of locked owns it
}

func newReads() *reads {
	return &reads{loads: make(chan struct{}, loadAtOnce), locked: make(chan struct{}, 1)}
}

// spaced reads under the lock of the journal, one read after the other. After one for which the server had to load a block the lock is left
// to writers for longer than that took: between two reads they get it for a single record.
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
		r.free = time.Now().Add(min(2*took, longestSpace))
	}
	return err
}

// load has the server load the blocks of the journal that the records of a chat lie in, and again the blocks of the next page: it may have
// dropped what nothing used for a moment. It fails with errNoBatch if the records lie too far apart.
func (r *Reader) load(ctx context.Context, filter string, after, upTo uint64) error {
	if r.loaded.Has(filter, time.Now()) {
		return r.loadBetween(ctx, after+1, min(upTo, after+loadAgain*loadStep))
	}
	subject := r.space.JournalSubject(filter)
	last, err := r.find(ctx, jsapi.Get{Last: subject})
	if err != nil {
		return err
	}
	first, err := r.find(ctx, jsapi.Get{Seq: 1, Next: subject}) // only where the journal begins does the server know where a filter does
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

// find returns where a record is. Any replica may answer. The reads are spaced, so no tenant has a budget for them.
func (r *Reader) find(ctx context.Context, get jsapi.Get) (seq uint64, err error) {
	err = r.reads.spaced(ctx, func() error {
		seq, err = jsapi.Find(ctx, r.nc, r.space.TurnsStream(), get)
		return err
	})
	return seq, err
}

// loadBetween reads records at some distance, by their sequences: that needs no lock of the journal.
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
