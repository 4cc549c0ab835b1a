package query

// Pages of events: a page is filled with records in the order of their sequences, found one by one. Where they
// lie far apart, the order of the names is read first, so that the server does not search the journal.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Bounds of one page. Only a single record may be larger than maxPageBytes; the server accepts a reply with it
// because it accepted the record.
const (
	pageRecords  = 16
	pageReads    = 4 * pageRecords // at most, with those that are left out
	maxPageBytes = 512 << 10
)

// pageBytes is what a page holds in bytes, so that the server accepts it in a message.
func (r *Reader) pageBytes() int { return min(maxPageBytes, int(r.nc.MaxPayload())-8<<10) }

// ChatEvents returns a page of the events of a chat, an id, from a sequence on.
func (r *Reader) ChatEvents(ctx context.Context, app, chat string, from uint64) (*api.Page, error) {
	page := r.newPage()
	err := r.each(ctx, app, subjects.ChatRecords(app, chat), from, func(rec *idempotency.Record, more bool) (bool, error) {
		if !page.add(rec) {
			return false, nil
		}
		if more && page.full() {
			page.Next = rec.Seq + 1
			return false, nil
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return &page.Page, nil
}

// each reads the records that match a filter in the order of their sequences, as long as do
// reports true; more reports whether there are others.
func (r *Reader) each(ctx context.Context, app, filter string, from uint64, do func(rec *idempotency.Record, more bool) (bool, error)) error {
	c, err := r.cursor(ctx, app, filter, from)
	for on := true; on && err == nil; {
		var rec *idempotency.Record
		if rec, err = c.next(); err != nil || rec == nil {
			break
		}
		on, err = do(rec, rec.Seq < c.last.Seq)
	}
	return err
}

// cursor reads the records that match a filter, one by one.
type cursor struct {
	find find
	from uint64
	last idempotency.Record // of all; its sequence is 0 if there is none
}

// find returns the first record from a sequence on.
type find func(from uint64) (idempotency.Record, error)

// cursor begins at a sequence. The last record is looked up first, because the server finds that in
// its index: the search for one more would go through the journal to its end.
func (r *Reader) cursor(ctx context.Context, app, filter string, from uint64) (*cursor, error) {
	last, err := r.last(ctx, app, filter)
	c := &cursor{from: from, last: last, find: func(from uint64) (idempotency.Record, error) { return r.next(ctx, app, filter, from) }}
	if err == nil && from <= 1 { // only where the journal begins does the server know where a filter does
		first, errFirst := c.find(from)
		c.from, err = first.Seq, errFirst
	}
	if err == nil && c.from < last.Seq && last.Seq-c.from > searchMost {
		c.find, err = r.inOrder(ctx, app, filter, c.from, c.find)
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		return &cursor{}, nil // there is none, or it has just expired
	}
	return c, err
}

// next returns the next record, nil if there is none.
func (c *cursor) next() (*idempotency.Record, error) {
	if c.last.Seq == 0 || c.from > c.last.Seq {
		return nil, nil //nolint:nilnil // there is none
	}
	r := c.last
	if c.from < c.last.Seq {
		var err error
		if r, err = c.find(c.from); err != nil {
			if errors.Is(err, idempotency.ErrNotFound) {
				err = nil // it has just expired
			}
			return nil, err
		}
	}
	c.from = r.Seq + 1
	return &r, nil
}

// searchMost is how many records of the journal lie between the first and the last of what
// may be searched for the next: the server stores nothing while it searches, some
// 10 ms for so many. Reading by names loads a block of the journal for each record at worst.
const searchMost = 50_000

// inOrder returns how to find the next record of a chat whose records may lie far apart. The
// search is for chats that have too many records for that.
func (r *Reader) inOrder(ctx context.Context, app, filter string, from uint64, search find) (find, error) {
	places, err := r.order.From(ctx, r.within(ctx, app), r.space.JournalSubject(filter), from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return search, nil
	}
	if err != nil {
		return nil, err
	}
	return func(from uint64) (idempotency.Record, error) {
		at, _ := slices.BinarySearchFunc(places, from, func(p Place, from uint64) int { return cmp.Compare(p.Seq, from) })
		for _, place := range places[at:] {
			rec, err := r.store.At(ctx, place.Seq)
			if !errors.Is(err, idempotency.ErrNotFound) { // else it has just expired
				return rec, err
			}
		}
		return idempotency.Record{}, idempotency.ErrNotFound
	}, nil
}

// filling is a page that is being filled.
type filling struct {
	api.Page

	most, size int // bytes
	reads      int // records, also those that are left out
}

func (r *Reader) newPage() *filling {
	return &filling{Page: api.Page{Records: []api.Record{}}, most: r.pageBytes()}
}

// full reports whether enough was read for a page.
func (p *filling) full() bool { return len(p.Records) == pageRecords || p.reads >= pageReads }

// add takes a record, or notes that it is too large for what there is, begins the next page,
// and reports false.
func (p *filling) add(r *idempotency.Record) bool {
	if p.size += len(r.Data); p.size > p.most && len(p.Records) > 0 {
		p.Next = r.Seq
		return false
	}
	p.reads++
	parsed, _ := subjects.ParseKey(r.Key)
	record := api.Record{Sequence: r.Seq, Time: r.Time, Kind: parsed.Kind, Fingerprint: r.Meta.Fingerprint, Event: r.Data}
	if parsed.Kind == events.RecordText {
		record.Due = r.Meta.Outcome
	}
	if r.Damaged() {
		if parsed.Kind != events.KindToolResponse || parsed.Call != subjects.SingleCall {
			return true // turnctl shows it
		}
		record.Event, record.Code = nil, events.CodeStateCorrupt // clients that wait for the end must see it
	}
	p.Records = append(p.Records, record)
	return true
}
