package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxReused is how many turns under one reused key are read at once.
const maxReused = 32

// turn reads a page of a turn: the whole of a short one by the names of its records, of a longer one
// no more than the page, so that what it costs does not depend on what the turn holds.
func (a *api) turn(ctx context.Context, app string, body []byte) (any, error) {
	var q TurnRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" || q.Turn == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","turn":"…","run_id":"…"?}`, errBadRequest)
	}
	calls, err := a.callsOf(ctx, app, &q)
	if err != nil {
		return nil, err
	}
	short, names, err := a.short(ctx, app, calls)
	if err != nil {
		return nil, err
	}
	var lists []recordList
	if short {
		lists, err = a.readAll(ctx, calls, names)
	} else {
		lists, err = a.readOn(ctx, app, calls, q.From)
	}
	if err != nil {
		return nil, err
	}
	return a.merge(lists, q.From)
}

// callsOf returns the keys that a request means: those under a reused turn key first.
func (a *api) callsOf(ctx context.Context, app string, q *TurnRequest) ([]subjects.Key, error) {
	key := subjects.TurnKey("", q.Chat, q.Run, q.Turn)
	key.App = app
	if q.Fingerprint != "" {
		return []subjects.Key{key.Reuse(q.Run, q.Turn, q.Fingerprint), key}, nil
	}
	reuses, err := a.store.ListReuses(ctx, a.searches.ofTurn(app), key, q.Run, q.Turn, maxReused)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, fmt.Errorf("%w: the turn key was used more than %d times with different data: name the fingerprint of the data, or read the history", errBadRequest, maxReused)
	}
	return append(reuses, key), err
}

// short reports whether all public records of some calls fit into a page, and returns their names, call by call.
func (a *api) short(ctx context.Context, app string, calls []subjects.Key) (bool, [][]string, error) {
	all, n := make([][]string, len(calls)), 0
	for i, call := range calls {
		filter := call.PublicRecords()
		if a.searches.isLarge(filter) {
			return false, nil, nil
		}
		names, err := a.searches.ofTurn(app)(ctx, filter)
		n += len(names)
		switch {
		case errors.Is(err, idempotency.ErrTooMany), err == nil && n > pageRecords:
			return false, nil, nil
		case err != nil:
			return false, nil, err
		}
		for _, name := range names {
			all[i] = append(all[i], name.Name())
		}
	}
	return true, all, nil
}

// recordList is what is left to read of a call.
type recordList struct {
	life *idempotency.Turn // with its claim, response and cancel
	next func() (*idempotency.Record, error)

	head *idempotency.Record // read already, nil at the end
}

// advance reads the next record of this life of the call.
func (l *recordList) advance() (err error) {
	for {
		if l.head, err = l.next(); err != nil || l.head == nil || l.life.Has(l.head) {
			return err
		}
	}
}

// fingerprint is that of the data of the call, "" if it is not known.
func (l *recordList) fingerprint() string {
	if l.life.Claim == nil {
		return ""
	}
	return l.life.Claim.Meta.Fingerprint
}

// readAll reads short calls.
func (a *api) readAll(ctx context.Context, calls []subjects.Key, names [][]string) ([]recordList, error) {
	lists := make([]recordList, len(calls))
	for i, call := range calls {
		found, err := a.store.Lasts(ctx, names[i]) // one that is gone has just expired
		if err != nil {
			return nil, err
		}
		life := idempotency.TurnOf(call, found)
		records := life.Records
		lists[i] = recordList{life: life, next: func() (r *idempotency.Record, err error) {
			if len(records) > 0 {
				r, records = &records[0], records[1:]
			}
			return r, nil
		}}
	}
	return lists, nil
}

// readOn reads calls from a sequence on.
func (a *api) readOn(ctx context.Context, app string, calls []subjects.Key, from uint64) ([]recordList, error) {
	lists := make([]recordList, len(calls))
	for i, call := range calls {
		life, err := idempotency.LoadEnds(ctx, a.store, call)
		if err != nil {
			return nil, err
		}
		c, err := a.cursor(ctx, app, call.PublicRecords(), from)
		if err != nil {
			return nil, err
		}
		lists[i] = recordList{life: life, next: c.next}
	}
	return lists, nil
}

// merge fills a page with the records of calls, in the order of their sequences.
func (a *api) merge(lists []recordList, from uint64) (*Page, error) {
	for i := range lists {
		if err := lists[i].advance(); err != nil {
			return nil, err
		}
	}
	page := a.newPage()
	for {
		var first *recordList
		for i := range lists {
			if l := &lists[i]; l.head != nil && (first == nil || l.head.Seq < first.head.Seq) {
				first = l
			}
		}
		if first == nil {
			return &page.Page, nil
		}
		if r := first.head; r.Seq >= from {
			if page.full() {
				page.Next = r.Seq
				return &page.Page, nil
			}
			if r.Damaged() { // it does not tell the fingerprint
				r.Meta.Fingerprint = first.fingerprint()
			}
			if !page.add(r) {
				return &page.Page, nil
			}
		}
		if err := first.advance(); err != nil {
			return nil, err
		}
	}
}
