package query

// The history of a chat is read in batches: one request returns the next records of the chat, in order, wherever they lie. It decides
// nothing, so any copy of the journal may answer, also one that lags: the leader lists the names of the records, a reply states up to
// which sequence its copy was written, and the leader has the rest. Where a batch is not possible, records are read one by one as in
// pages.go.
//
// The server reads a batch under the lock of the copy. A mirror has a separate lock. In the journal, the blocks that a chat lies in are
// loaded before, by reads that need no lock, so that the batch delays no write.

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

const (
	// historyBytes is how many bytes of events a page of a history holds, unless its first event alone has more.
	historyBytes = 256 << 10
	// batchNames is how many names a request has: the server finds the records of 1,024 at most.
	batchNames = 1_000
	// nearRecords is how many records of the journal may lie between the cursor and the end of a history that is read one by one.
	nearRecords uint64 = 1_000
	// loadStep is how many records apart the journal is read to load it: a block of the store has more of the usual size.
	loadStep   = 2_000
	loadAtOnce = 4 // reads
	loadAgain  = 4 // of them before each page
	// loadedFor is how long the server keeps at least what was loaded, after its last use.
	loadedFor = 5 * time.Second
	// mostLoaded bounds the chats that are remembered as loaded.
	mostLoaded = 10_000
	// quickRead is how long a read takes for which nothing is loaded; longestSpace bounds the pause after another one.
	quickRead    = 10 * time.Millisecond
	longestSpace = 200 * time.Millisecond
	// copyGap is how many records a copy may lack before the journal is read instead.
	copyGap = 10_000
)

// HistoryPage has the public records of a chat after a sequence, in the order of their sequences.
type HistoryPage struct {
	Records []idempotency.Record // damaged ones too, see [idempotency.Record.Damaged]
	Through uint64               // no record up to this sequence is missing
}

// History returns the first public records of a chat, an id, whose sequences are greater than after and not greater than upTo, limit
// records at most. UpTo is not greater than the last sequence of the journal. The page ends at Through, which is upTo after the last
// page. A record that was replaced since need not be in it: its successor has a greater sequence.
func (r *Reader) History(ctx context.Context, app, chat string, after, upTo uint64, limit int) (*HistoryPage, error) {
	if after >= upTo {
		return &HistoryPage{Through: after}, nil
	}
	filter := subjects.ChatRecords(app, chat)
	page, err := r.batch(ctx, app, filter, after, upTo, limit)
	if err == nil && page.Through > after {
		return page, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return r.oneByOne(ctx, app, filter, after, upTo, limit)
}

// oneByOne reads a page from the leader, record by record.
func (r *Reader) oneByOne(ctx context.Context, app, filter string, after, upTo uint64, limit int) (*HistoryPage, error) {
	page := &HistoryPage{Through: upTo}
	size := 0
	err := r.each(ctx, app, filter, after+1, func(rec *idempotency.Record, _ bool) (bool, error) {
		size += len(rec.Data)
		switch n := len(page.Records); {
		case rec.Seq > upTo:
			return false, nil
		case n > 0 && (n >= limit || size > historyBytes):
			page.Through = page.Records[n-1].Seq
			return false, nil
		}
		page.Records = append(page.Records, *rec)
		return true, nil
	})
	if n := len(page.Records); err != nil && n > 0 { // the next page continues there: else a tenant without budget would never come to its end
		page.Through = page.Records[n-1].Seq
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	return page, nil
}

// errNoBatch is the error of a page that has to be read one by one.
var errNoBatch = errors.New("no batch")

// batch reads a page in one request, or a few if the chat has many records. Its Through is after if the replies prove nothing.
func (r *Reader) batch(ctx context.Context, app, filter string, after, upTo uint64, limit int) (*HistoryPage, error) {
	from := r.copies.look(ctx, r)
	if from.none || after > 0 && upTo-after <= r.near {
		return nil, errNoBatch
	}
	names, err := r.namesAfter(ctx, app, filter, after, upTo)
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0: // of records that are known, all are before
		return &HistoryPage{Through: upTo}, nil
	case !from.mirror:
		if err := r.load(ctx, app, filter, after, upTo); err != nil {
			return nil, err
		}
	}
	page, whole := &HistoryPage{Through: math.MaxUint64}, true
	for chunk := range slices.Chunk(names, batchNames) {
		more, err := r.readNames(ctx, filter, from, chunk, after, limit, page)
		if err != nil {
			return nil, err
		}
		whole = whole && !more
	}
	if cut := page.cut(upTo, limit); whole && !cut && page.Through < upTo && page.Through > after {
		err = r.complete(ctx, app, filter, from, page, upTo, limit)
	}
	return page, err
}

// readNames adds the records with some names to a page, which ends where the reply does, and reports whether there are more.
func (r *Reader) readNames(ctx context.Context, filter string, from source, names []string, after uint64, limit int, page *HistoryPage) (more bool, err error) {
	get := jsapi.Last{Filters: names, From: after + 1, Most: limit, Bytes: historyBytes}
	var reply *jsapi.LastPage
	read := func() (err error) {
		reply, err = jsapi.LastMessages(ctx, r.nc, from.stream, get) // by names: it searches for nothing
		return err
	}
	if from.mirror {
		err = read()
	} else {
		err = r.spaced(ctx, read)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jsapi.ErrNoDirect) {
		r.copies.failed(from)
	}
	if err != nil {
		return false, err
	}
	r.listed.found(filter, reply.Messages, reply.UpTo)
	last := after
	for i := range reply.Messages {
		m := &reply.Messages[i]
		key, _ := r.space.JournalKeyOf(m.Subject)
		rec := idempotency.Record{Key: key, Data: m.Data, Seq: m.Seq, Time: m.Time}
		rec.Meta, rec.Err = idempotency.ParseMeta(m.Header.Get)
		page.Records = append(page.Records, rec)
		last = m.Seq
	}
	if !reply.More { // a copy has all records before the last one that it has
		last = max(last, reply.UpTo)
	}
	page.Through = min(page.Through, last)
	return reply.More, nil
}

// cut sorts the records of several replies, removes those after the end of the page, and reports whether the page ends because it is
// full.
func (p *HistoryPage) cut(upTo uint64, limit int) (full bool) {
	slices.SortFunc(p.Records, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	p.Through = min(p.Through, upTo)
	size := 0
	for n := range p.Records {
		size += len(p.Records[n].Data)
		switch {
		case p.Records[n].Seq > p.Through:
		case n > 0 && (n >= limit || size > historyBytes):
			p.Through, full = p.Records[n-1].Seq, true
		default:
			continue
		}
		p.Records = p.Records[:n]
		break
	}
	return full
}

// complete adds what a copy lacks from the leader, if that is little.
func (r *Reader) complete(ctx context.Context, app, filter string, from source, page *HistoryPage, upTo uint64, limit int) error {
	if upTo-page.Through > copyGap {
		r.copies.failed(from)
		return nil
	}
	size := 0
	for i := range page.Records {
		size += len(page.Records[i].Data)
	}
	for len(page.Records) < limit && size < historyBytes {
		rec, err := r.next(ctx, app, filter, page.Through+1)
		if errors.Is(err, idempotency.ErrNotFound) || err == nil && rec.Seq > upTo {
			page.Through = upTo
			return nil
		}
		if err != nil {
			return err
		}
		page.Records, page.Through = append(page.Records, rec), rec.Seq
		size += len(rec.Data)
	}
	return nil
}

// load has the server load the blocks of the journal that the records of a chat lie in, and again the blocks of the next page: it may have
// dropped what nothing used for a moment. It fails with errNoBatch if the records lie too far apart.
func (r *Reader) load(ctx context.Context, app, filter string, after, upTo uint64) error {
	if r.loaded.Has(filter, time.Now()) {
		return r.loadBetween(ctx, after+1, min(upTo, after+loadAgain*loadStep))
	}
	var first, last idempotency.Record
	err := r.spaced(ctx, func() (err error) {
		last, err = r.last(ctx, app, filter)
		return err
	})
	if err != nil {
		return err
	}
	err = r.spaced(ctx, func() (err error) { // only where the journal begins does the server know where a filter does
		first, err = r.next(ctx, app, filter, 0)
		return err
	})
	if err != nil {
		return err
	}
	end := min(last.Seq, upTo)
	if end > first.Seq && end-first.Seq > searchMost {
		return errNoBatch
	}
	if err := r.loadBetween(ctx, first.Seq+loadStep, end); err != nil {
		return err
	}
	r.loaded.Add(filter, time.Now())
	return nil
}

// spaced reads under the lock of the journal, one read after the other. After one for which the server had to load a block it leaves the
// lock to writers for longer than that took: between two reads they get it for a single record.
func (r *Reader) spaced(ctx context.Context, read func() error) error {
	select {
	case r.reading <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.reading }()
	begun := time.Now()
	err := read()
	if took := time.Since(begun); err == nil && took > quickRead {
		err = pause.For(ctx, min(2*took, longestSpace))
	}
	return err
}

// loadBetween reads records at some distance, by their sequences: that needs no lock of the journal.
func (r *Reader) loadBetween(ctx context.Context, first, end uint64) error {
	var reads errgroup.Group
	reads.SetLimit(loadAtOnce)
	for seq := first; seq < end; seq += loadStep {
		reads.Go(func() error {
			_, err := r.store.At(ctx, seq)
			if errors.Is(err, idempotency.ErrNotFound) {
				err = nil
			}
			return err
		})
	}
	return reads.Wait() //nolint:wrapcheck // the error of the read
}
