package query

// Pages of a turn: a short turn is read whole by the names of its records, a longer one page by page, and turns
// that ran under one reused key are merged. Of the steps of a program the pages have what they ask and show, not their calls
// and responses: the response in a page is always the turn's (see steps.go for the steps).

import (
	"context"
	"errors"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// MaxReused is how many turns under one reused key one request reads.
const MaxReused = 32

// TurnEvents returns a page of a turn: the whole of a short one by the names of its records, of a longer one
// no more than the page, so that what it costs does not depend on what the turn holds. It fails with
// [idempotency.ErrTooMany] if more than [MaxReused] turns ran under the key and no fingerprint selects one.
func (r *Reader) TurnEvents(ctx context.Context, app string, q *api.TurnRequest) (*api.Page, error) {
	calls, err := r.callsOf(ctx, app, q)
	if err != nil {
		return nil, err
	}
	short, names, err := r.short(ctx, app, calls)
	if err != nil {
		return nil, err
	}
	var lists []recordList
	if short {
		lists, err = r.readAll(ctx, calls, names)
	} else {
		lists, err = r.readOn(ctx, app, calls, filtersOfPages, q.From)
	}
	if err != nil {
		return nil, err
	}
	page, err := r.merge(lists, q.From)
	if err == nil && q.Message != "" {
		err = r.addTurn(ctx, page, calls[0])
	}
	return page, err
}

// callsOf returns the keys that a request refers to: those under a reused turn key first.
func (r *Reader) callsOf(ctx context.Context, app string, q *api.TurnRequest) ([]subjects.Key, error) {
	if q.Message != "" {
		key := subjects.MessageKey("", q.Chat, q.Run, q.Message)
		key.App = app
		return []subjects.Key{key}, nil
	}
	key := subjects.TurnKey("", q.Chat, q.Run, q.Turn)
	key.App = app
	if q.Fingerprint != "" {
		return []subjects.Key{key.Reuse(q.Run, q.Turn, q.Fingerprint), key}, nil
	}
	reuses, err := Reuses(ctx, r.store, r.namesOfTurn(app), key, q.Run, q.Turn, MaxReused)
	return append(reuses, key), err
}

// inPages reports whether pages of a turn have a record of the turn.
func inPages(name subjects.Record) bool {
	return name.Call == subjects.SingleCall || name.ID != "" // questions and surfaces have ids
}

// filtersOfPages match the records of a turn that are in its pages, each of them once.
func filtersOfPages(turn subjects.Key) []string {
	return []string{turn.OfTurn().Public(idempotency.AnyToken), turn.WithCall(idempotency.AnyToken).Public(idempotency.AnyToken, idempotency.AnyToken)}
}

// short reports whether all records of some turns fit into a page, and returns their names, turn by turn.
func (r *Reader) short(ctx context.Context, app string, calls []subjects.Key) (bool, [][]string, error) {
	all, n := make([][]string, len(calls)), 0
	for i, call := range calls {
		filter := call.PublicRecords()
		if r.isLarge(filter) {
			return false, nil, nil
		}
		names, err := r.namesOfTurn(app)(ctx, filter)
		names = slices.DeleteFunc(names, func(name subjects.Record) bool { return !inPages(name) })
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

// recordList is what is left to read of records of a turn.
type recordList struct {
	turn *idempotency.Turn // with its claim, response and cancel
	next func() (*idempotency.Record, error)

	head *idempotency.Record // read already, nil at the end
}

// advance reads the next record of this generation of the turn.
func (l *recordList) advance() (err error) {
	for {
		if l.head, err = l.next(); err != nil || l.head == nil || l.turn.Has(l.head) {
			return err
		}
	}
}

// fingerprint belongs to the data of the turn, "" if it is not known.
func (l *recordList) fingerprint() string {
	if l.turn.Claim == nil {
		return ""
	}
	return l.turn.Claim.Meta.Fingerprint
}

// readAll reads short turns.
func (r *Reader) readAll(ctx context.Context, calls []subjects.Key, names [][]string) ([]recordList, error) {
	lists := make([]recordList, len(calls))
	for i, call := range calls {
		found, err := r.store.LastOf(ctx, names[i]) // one that is gone has just expired
		if err != nil {
			return nil, err
		}
		turn := idempotency.TurnOf(call, found)
		records := turn.Records
		lists[i] = recordList{turn: turn, next: func() (rec *idempotency.Record, err error) {
			if len(records) > 0 {
				rec, records = &records[0], records[1:]
			}
			return rec, nil
		}}
	}
	return lists, nil
}

// readOn reads the records of turns from a sequence on that match the filters of each turn.
func (r *Reader) readOn(ctx context.Context, app string, turns []subjects.Key, filters func(turn subjects.Key) []string, from uint64) ([]recordList, error) {
	var lists []recordList
	for _, key := range turns {
		turn, err := idempotency.LoadEnds(ctx, r.store, key)
		if err != nil {
			return nil, err
		}
		for _, filter := range filters(key) {
			c, err := r.cursor(ctx, app, filter, from)
			if err != nil {
				return nil, err
			}
			lists = append(lists, recordList{turn: turn, next: c.next})
		}
	}
	return lists, nil
}

// merge fills a page with records of several lists, in the order of their sequences.
func (r *Reader) merge(lists []recordList, from uint64) (*api.Page, error) {
	page := r.newPage()
	err := inOrder(lists, func(rec *idempotency.Record, turn *recordList) bool {
		switch {
		case rec.Seq < from:
			return true
		case page.full():
			page.Next = rec.Seq
			return false
		}
		if rec.Damaged() { // its fingerprint is unreadable
			rec.Meta.Fingerprint = turn.fingerprint()
		}
		return page.add(rec)
	})
	return &page.Page, err
}

// inOrder calls do for the records of all lists, in the order of their sequences, as long as it reports true.
func inOrder(lists []recordList, do func(rec *idempotency.Record, of *recordList) bool) error {
	for i := range lists {
		if err := lists[i].advance(); err != nil {
			return err
		}
	}
	for {
		var first *recordList
		for i := range lists {
			if l := &lists[i]; l.head != nil && (first == nil || l.head.Seq < first.head.Seq) {
				first = l
			}
		}
		if first == nil || !do(first.head, first) {
			return nil
		}
		if err := first.advance(); err != nil {
			return err
		}
	}
}
