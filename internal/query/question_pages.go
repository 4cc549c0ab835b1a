package query

// Pages of open questions. The questions of a chat are found by their records, the questions of a tenant by the timers
// that end them.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// Questions returns a page of the open questions of a chat, an id, or of all chats of the tenant if it is "": 16 at
// most, those that are decided are read as well. Questions of a chat have their schemas and payloads.
func (r *Reader) Questions(ctx context.Context, app, chat string, from uint64) (*api.Questions, error) {
	page := &questionPage{Questions: &api.Questions{Questions: []api.Question{}}, reader: r, whole: chat != ""}
	var err error
	if chat == "" {
		err = r.questionsOfTenant(ctx, app, from, page)
	} else {
		err = r.each(ctx, app, subjects.QuestionsOfChat(app, chat), from, func(rec *idempotency.Record, more bool) (bool, error) {
			return page.add(ctx, rec, rec.Seq, more)
		})
	}
	if err != nil {
		return nil, err
	}
	return page.Questions, nil
}

// Timers lists the questions whose timers match a filter: every question has one until its time is over.
func (r *Reader) Timers(ctx context.Context, filter string) ([]subjects.Record, error) {
	var found []subjects.Record
	for offset, total := 0, 1; offset < total; {
		info, err := jsapi.Info(ctx, r.nc, r.space.TimersStream(), filter, offset)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(info.State.Subjects)) {
			if key, ask, ok := r.space.ParseAskTimer(name); ok {
				found = append(found, subjects.Record{Key: key, Kind: events.RecordAsk, ID: ask})
			}
		}
		offset, total = offset+max(len(info.State.Subjects), 1), info.Total
	}
	return found, nil
}

// questionsOfTenant finds questions among the timers that end them: every question has one until
// its time is over. To look for records of one kind in all chats, the server would go through the
// names of all turns, a quarter of a second for 200,000, and store nothing meanwhile.
func (r *Reader) questionsOfTenant(ctx context.Context, app string, from uint64, page *questionPage) error {
	filter := r.space.AskTimersOfTenant(app)
	places, err := r.timers.From(ctx, r.within(ctx, app), filter, from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return r.searchTimers(ctx, app, filter, from, page)
	}
	if err != nil {
		return err
	}
	for _, place := range places {
		if on, err := r.questionOfTimer(ctx, place.Subject, place.Seq, page); err != nil || !on {
			return err
		}
	}
	return nil
}

// searchTimers is for tenants that have too many questions for the index. The server goes through
// the timers of all tenants, hence the budget. The last one is looked up first: the search for one
// more would go through them to their end.
func (r *Reader) searchTimers(ctx context.Context, app, filter string, from uint64, page *questionPage) error {
	search := r.within(ctx, app)
	var last uint64
	err := search(func() (err error) {
		last, err = r.timers.last(ctx, filter)
		return err
	})
	for on := true; on && err == nil && from <= last; from++ {
		var timer jsapi.Message
		err = search(func() (err error) {
			timer, err = r.timers.read(ctx, jsapi.Get{Seq: max(from, 1), Next: filter})
			return err
		})
		if err == nil {
			from = timer.Seq
			on, err = r.questionOfTimer(ctx, timer.Subject, from, page)
		}
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil // it has just ended
	}
	return err
}

// questionOfTimer reads the question of a timer that was found at a sequence.
func (r *Reader) questionOfTimer(ctx context.Context, timer string, at uint64, page *questionPage) (on bool, err error) {
	key, ask, ok := r.space.ParseAskTimer(timer)
	if !ok {
		return true, nil
	}
	asked, err := r.store.Last(ctx, key.Public(events.RecordAsk, ask))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return page.takesMore(at, true), nil
	case err != nil:
		return false, err
	}
	return page.add(ctx, &asked, at, true)
}

// questionPage is a page of questions that is being filled.
type questionPage struct {
	*api.Questions

	reader      *Reader
	whole       bool // with schema and payload
	reads, size int
}

// add takes a question that is open, and reports whether the page takes another one. At is where
// the question was found, and more whether there may be others after it.
func (p *questionPage) add(ctx context.Context, r *idempotency.Record, at uint64, more bool) (bool, error) {
	q := ReadQuestion(r, p.whole)
	if q == nil {
		return p.takesMore(at, more), nil
	}
	var err error
	if q.State, err = p.reader.stateOf(ctx, r); err != nil {
		return false, err
	}
	if q.State == api.Open {
		if p.size += sizeOf(q); p.size > p.reader.pageBytes() && len(p.Questions.Questions) > 0 {
			p.Next = at
			return false, nil
		}
		p.Questions.Questions = append(p.Questions.Questions, *q)
	}
	return p.takesMore(at, more), nil
}

// takesMore counts a record that was read, and reports whether the page takes another one.
func (p *questionPage) takesMore(at uint64, more bool) bool {
	if p.reads++; more && p.reads == pageRecords {
		p.Next = at + 1
		return false
	}
	return true
}

// sizeOf returns the size of a question as JSON. The usual escapes for HTML would make it up to six times as large.
func sizeOf(q *api.Question) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(q) //nolint:errchkjson // cannot fail: the schema and the payload are valid JSON
	return b.Len()
}
