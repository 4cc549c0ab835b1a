package apiserver

// Pages of events: a page is filled with records in the order of their sequences, found one by one. Where they
// lie far apart, the order of the names is read first, so that the server does not search the journal.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// history reads a page of a chat.
func (s *Server) history(ctx context.Context, app string, body []byte) (any, error) {
	var q api.HistoryRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","from":0}`, errBadRequest)
	}
	page := s.newPage()
	err := s.each(ctx, app, subjects.ChatRecords(app, q.Chat), q.From, func(r *idempotency.Record, more bool) (bool, error) {
		if !page.add(r) {
			return false, nil
		}
		if more && page.full() {
			page.Next = r.Seq + 1
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
func (s *Server) each(ctx context.Context, app, filter string, from uint64, do func(r *idempotency.Record, more bool) (bool, error)) error {
	c, err := s.cursor(ctx, app, filter, from)
	for on := true; on && err == nil; {
		var r *idempotency.Record
		if r, err = c.next(); err != nil || r == nil {
			break
		}
		on, err = do(r, r.Seq < c.last.Seq)
	}
	return err
}

// cursor reads the records that match a filter, one by one.
type cursor struct {
	find next
	from uint64
	last idempotency.Record // of all; its sequence is 0 if there is none
}

// cursor begins at a sequence. The last record is looked up first, because the server finds that in
// its index: the search for one more would go through the journal to its end.
func (s *Server) cursor(ctx context.Context, app, filter string, from uint64) (*cursor, error) {
	last, err := s.reader.Last(ctx, app, filter)
	c := &cursor{from: from, last: last, find: func(from uint64) (idempotency.Record, error) { return s.reader.Next(ctx, app, filter, from) }}
	if err == nil && from <= 1 { // only where the journal begins does the server know where a filter does
		first, errFirst := c.find(from)
		c.from, err = first.Seq, errFirst
	}
	if err == nil && c.from < last.Seq && last.Seq-c.from > searchMost {
		c.find, err = s.inOrder(ctx, app, filter, c.from, c.find)
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
func (s *Server) inOrder(ctx context.Context, app, filter string, from uint64, search next) (next, error) {
	places, err := s.reader.Order.FromWithin(ctx, s.reader.Within(ctx, app), filter, from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return search, nil
	}
	if err != nil {
		return nil, err
	}
	return func(from uint64) (idempotency.Record, error) {
		at, _ := slices.BinarySearchFunc(places, from, func(p kvstore.Place, from uint64) int { return cmp.Compare(p.Seq, from) })
		for _, place := range places[at:] {
			r, err := s.reader.Store.At(ctx, place.Seq)
			if !errors.Is(err, idempotency.ErrNotFound) { // else it has just expired
				return r, err
			}
		}
		return idempotency.Record{}, idempotency.ErrNotFound
	}, nil
}

// next returns the first record of a chat from a sequence on.
type next func(from uint64) (idempotency.Record, error)

// filling is a page that is being filled.
type filling struct {
	api.Page

	most, size int // bytes
	reads      int // records, also those that are left out
}

func (s *Server) newPage() *filling {
	return &filling{Page: api.Page{Records: []api.Record{}}, most: min(pageBytes, s.most)}
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
	if r.Damaged() {
		if parsed.Kind != events.KindToolResponse {
			return true // turnctl shows it
		}
		record.Event, record.Code = nil, events.CodeStateCorrupt // clients that wait for the end must see it
	}
	p.Records = append(p.Records, record)
	return true
}

// encode writes an answer as JSON. The usual escapes for HTML would make an event up to six
// times as long, and the answer larger than the server takes.
func encode(answer any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(answer) //nolint:errchkjson // cannot fail: the events are valid JSON
	return b.Bytes()
}
