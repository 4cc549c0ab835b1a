package oneturn

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxReused is how many turns under one reused key are read at once.
const maxReused = 32

// turn reads a turn by the names of its records, which the server keeps in an index: looking
// for "the next one" until there is none would search the journal to its end.
func (a *api) turn(ctx context.Context, app string, body []byte) (any, error) {
	var q TurnRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" || q.Turn == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","turn":"…","run_id":"…"?}`, errBadRequest)
	}
	key := subjects.TurnKey("", q.Chat, q.Run, q.Turn)
	key.App = app
	reuses := []subjects.Key{key.Reuse(q.Run, q.Turn, q.Fingerprint)}
	if q.Fingerprint == "" {
		var err error
		reuses, err = a.store.Reuses(ctx, key, q.Run, q.Turn, maxReused)
		switch {
		case errors.Is(err, idempotency.ErrTooMany):
			return nil, fmt.Errorf("%w: the turn key was used more than %d times with different data: name the fingerprint of the data, or read the history", errBadRequest, maxReused)
		case err != nil:
			return nil, err
		}
	}
	var records []idempotency.Record
	for _, k := range append(reuses, key) {
		turn, err := idempotency.Load(ctx, a.store, k)
		if err != nil {
			return nil, err
		}
		claimed := "" // the fingerprint of the turn, which a damaged response does not tell
		if turn.Claim != nil {
			claimed = turn.Claim.Meta.Fingerprint
		}
		for _, r := range turn.Records {
			if r.Damaged() {
				r.Meta.Fingerprint = claimed
			}
			if parsed, ok := subjects.ParseKey(r.Key); ok && !parsed.Private && r.Seq >= q.From {
				records = append(records, r)
			}
		}
	}
	slices.SortFunc(records, func(a, b idempotency.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	page := a.newPage()
	for i := range records {
		if len(page.Records) == pageRecords {
			page.Next = records[i].Seq
			break
		}
		if !page.add(&records[i]) {
			break
		}
	}
	return &page.Page, nil
}

// history reads a page of a chat.
func (a *api) history(ctx context.Context, app string, body []byte) (any, error) {
	var q HistoryRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","from":0}`, errBadRequest)
	}
	page := a.newPage()
	err := a.each(ctx, app, subjects.ChatRecords(app, q.Chat), q.From, func(r *idempotency.Record, more bool) (bool, error) {
		if !page.add(r) {
			return false, nil
		}
		if more && len(page.Records) == pageRecords {
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
// reports true; do is told whether there are more. The last record is looked up first, because
// the server finds that in its index: the search for one more would go through the journal to
// its end.
func (a *api) each(ctx context.Context, app, filter string, from uint64, do func(r *idempotency.Record, more bool) (bool, error)) error {
	last, err := a.searches.last(ctx, app, filter)
	find := next(func(from uint64) (idempotency.Record, error) { return a.searches.next(ctx, app, filter, from) })
	if err == nil && from <= 1 { // only where the journal begins does the server know where a filter does
		first, errFirst := find(from)
		from, err = first.Seq, errFirst
	}
	if err == nil && from < last.Seq && last.Seq-from > searchMost {
		find, err = a.inOrder(ctx, app, filter, from, find)
	}
	for on := true; on && err == nil && from <= last.Seq; {
		r := last
		if from < last.Seq {
			if r, err = find(from); err != nil {
				break
			}
		}
		on, err = do(&r, r.Seq < last.Seq)
		from = r.Seq + 1
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil // it has just expired
	}
	return err
}

// searchMost is how many records of the journal lie between the first and the last of what
// may be searched for the next: the server stores nothing while it searches, some
// 10 ms for so many. Reading by names loads a block of the journal for each record at worst.
const searchMost = 50_000

// inOrder returns how to find the next record of a chat whose records may lie far apart. The
// search is for chats that have too many records for that.
func (a *api) inOrder(ctx context.Context, app, filter string, from uint64, search next) (next, error) {
	places, err := a.searches.order.FromWithin(ctx, a.searches.within(ctx, app), filter, from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return search, nil
	}
	if err != nil {
		return nil, err
	}
	return func(from uint64) (idempotency.Record, error) {
		at, _ := slices.BinarySearchFunc(places, from, func(p idempotency.Place, from uint64) int { return cmp.Compare(p.Seq, from) })
		for _, place := range places[at:] {
			r, err := a.store.At(ctx, place.Seq)
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
	Page

	most, size int // bytes
}

func (a *api) newPage() *filling {
	return &filling{Page: Page{Records: []PageRecord{}}, most: min(pageBytes, a.most)}
}

// add takes a record, or notes that it is too large for what there is, begins the next page,
// and reports false.
func (p *filling) add(r *idempotency.Record) bool {
	if p.size += len(r.Data); p.size > p.most && len(p.Records) > 0 {
		p.Next = r.Seq
		return false
	}
	parsed, _ := subjects.ParseKey(r.Key)
	record := PageRecord{Sequence: r.Seq, Time: r.Time, Kind: parsed.Kind, Fingerprint: r.Meta.Fingerprint, Event: r.Data}
	if r.Damaged() {
		if parsed.Kind != events.KindToolResponse {
			return true // turnctl shows it
		}
		record.Event, record.Code = nil, events.CodeStateCorrupt // who waits for the end has to hear of it
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
