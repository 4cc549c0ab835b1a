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
	"fmt"
	"math"
	"slices"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// MirrorGap is how many records a mirror may lack: with more, histories are read from the journal for a minute.
const MirrorGap = 10_000

const (
	// historyBytes is how many bytes of events a page of a history holds, unless its first event alone has more.
	historyBytes = 256 << 10
	// batchNames is how many names a request has: the server finds the records of 1,024 at most.
	batchNames = 1_000
	// nearRecords is how many records of the journal may lie between the cursor and the end of a history that is read one by one.
	nearRecords uint64 = 1_000
	// copyGap is how many records a copy may lack before the journal is read instead.
	copyGap = MirrorGap
)

// HistoryPage has the public records of a chat after a sequence, in the order of their sequences.
type HistoryPage struct {
	Records []idempotency.Record // damaged ones too, see [idempotency.Record.Damaged]
	Through uint64               // no record up to this sequence is missing
}

// History returns the first public records of a chat, an id, whose sequences are greater than after and not greater than upTo, limit
// records at most. UpTo is not greater than the last sequence of the journal, or the greatest number: then it means the end of the journal.
// The page ends at Through, which is upTo after the last page. A record that was replaced since need not be in it: its successor has a greater sequence.
func (r *Reader) History(ctx context.Context, app, chat string, after, upTo uint64, limit int) (*HistoryPage, error) {
	if after >= upTo {
		return &HistoryPage{Through: after}, nil
	}
	if upTo == math.MaxUint64 {
		return r.toTheEnd(ctx, app, chat, after, limit)
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

// toTheEnd reads a page of a history that ends where the journal does.
func (r *Reader) toTheEnd(ctx context.Context, app, chat string, after uint64, limit int) (*HistoryPage, error) {
	info, err := jsapi.Info(ctx, r.nc, r.space.TurnsStream(), "", 0)
	if err != nil {
		return nil, fmt.Errorf("find the end of the journal: %w", err)
	}
	page, err := r.History(ctx, app, chat, after, info.State.LastSeq, limit)
	if err == nil && page.Through >= info.State.LastSeq {
		page.Through = math.MaxUint64
	}
	return page, err
}

// CountHistories sets what is called for each page of a history that was read: from the mirror, or from the journal. Call it before
// the first read.
func (r *Reader) CountHistories(count func(mirror bool)) { r.countHistory = count }

// oneByOne reads a page from the leader, record by record.
func (r *Reader) oneByOne(ctx context.Context, app, filter string, after, upTo uint64, limit int) (*HistoryPage, error) {
	r.countHistory(false)
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
	from := r.copies.source(ctx, r)
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
		if err := r.load(ctx, filter, after, upTo); err != nil {
			return nil, r.unanswered(from, err)
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
	if err == nil && page.Through > after {
		r.countHistory(from.mirror)
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
		err = r.reads.spaced(ctx, read)
	}
	if err != nil {
		return false, r.unanswered(from, err)
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

// unanswered remembers for a while that a copy does not answer, if that is what an error means, and returns the error.
func (r *Reader) unanswered(from source, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jsapi.ErrNoDirect) {
		r.copies.failed(from)
	}
	return err
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
