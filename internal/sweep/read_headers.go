package sweep

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// This file reads the headers of the journal that no sweep has read, part by part. The claims of a part collect the
// turns that it opens; records of turns that were claimed before it are noted in newRecords.

// readBatch is how many sequences are read before the result is committed. No header is read
// again after that.
const readBatch = 100_000

// read reads the headers of the journal that no sweep has read, and appends the turns that have no
// response among them to the open ones.
func (r *round) read(ctx context.Context, scope Scope) error {
	name := r.Space.TurnsStream()
	stream, err := r.JS.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("sweep: stream %s: %w", name, err)
	}
	end := stream.CachedInfo().State
	r.first = end.FirstSeq
	if r.state.From > end.LastSeq+1 { // another journal than the one that the last sweep read
		r.state = State{First: r.state.Next, Next: r.state.Next}
	}
	r.news.from = max(r.state.From, end.FirstSeq)
	for from := r.news.from; from <= end.LastSeq; from = r.state.From {
		last := min(from+readBatch-1, end.LastSeq)
		found := newClaims(scope)
		err := jsapi.Headers{JS: r.JS, Rate: r.Rate}.Read(ctx, name, from, last, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
			r.out.Headers++
			key, _ := r.Space.JournalKeyOf(m.Subject())
			rec, ok := subjects.ParseKey(key)
			switch {
			case !ok:
			case !found.add(rec, m, meta):
				r.news.add(rec.OfTurn(), meta.Sequence.Stream, isOfTurn(rec, events.KindToolResponse) || endsMessage(rec, m))
			case isOfTurn(rec, events.KindToolCall):
				r.news.forget(rec.Key)
			}
		})
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		open := found.sorted()
		r.state.Open += len(open)
		r.state.From = last + 1
		r.keep(r.state.From, open...)
		if err := r.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claims are the turns of a part of the journal that have no response in it.
type claims struct {
	in   func(subjects.Key) bool
	open map[subjects.Key]OpenTurn
}

func newClaims(scope Scope) *claims {
	return &claims{in: scope.matcher(), open: map[subjects.Key]OpenTurn{}}
}

// isOfTurn reports whether a record is the claim or the end of a turn or message, and not of a step of a program.
func isOfTurn(r subjects.Record, kind string) bool {
	return r.Kind == kind && !r.Private && r.ID == "" && r.Call == subjects.SingleCall
}

// endsMessage reports whether nothing (more) follows from a message after a record.
func endsMessage(r subjects.Record, m jetstream.Msg) bool {
	return isOfTurn(r, events.KindHandoff) ||
		r.Private && r.Kind == events.RecordTurn && m.Headers().Get(idempotency.HeaderOutcome) == idempotency.NoTurn
}

// add records what a header shows, and reports whether its turn was claimed in this part or does not matter. If not,
// the turn was claimed in an earlier part. Records of the steps of a program count for its turn, but none of them claims or
// ends it.
func (c *claims) add(r subjects.Record, m jetstream.Msg, meta *jetstream.MsgMetadata) bool {
	if !c.in(r.Key) || r.Call == subjects.Absent {
		return true
	}
	turn := r.OfTurn()
	o, known := c.open[turn]
	switch {
	case r.Private && idempotency.Secrecy(m.Headers().Get(idempotency.HeaderSecret)) == idempotency.Sealed:
		if !known {
			o = OpenTurn{Key: turn.String(), Seq: meta.Sequence.Stream}
		}
		o.Secret = true
	case isOfTurn(r, events.KindToolCall):
		o.claimed(r, m, meta)
	case isOfTurn(r, events.KindText):
		if m.Headers().Get(idempotency.HeaderOutcome) == idempotency.DueNothing {
			return true
		}
		o.claimed(r, m, meta)
		o.Message = true
	case !known:
		return false
	case endsMessage(r, m):
		delete(c.open, turn)
		return true
	case r.Private || r.ID != "":
		o.Held, o.Stream = 0, "" // another message may hold it, or none
	case isOfTurn(r, events.KindToolResponse):
		if !o.Secret { // else it is checked one more time, to erase them
			delete(c.open, turn)
			return true
		}
		o.At = 0
	}
	if known {
		o.Newest = meta.Sequence.Stream
	}
	c.open[turn] = o
	return known || o.At != 0
}

// claimed notes the claim of a turn, and its lease if the header can be parsed.
func (o *OpenTurn) claimed(r subjects.Record, m jetstream.Msg, meta *jetstream.MsgMetadata) {
	o.Key, o.Seq, o.At = r.String(), meta.Sequence.Stream, meta.Timestamp.Unix()
	if lease, err := idempotency.ParseLease(m.Headers().Get(idempotency.HeaderLease)); err == nil {
		o.Held, o.Stream = lease.Seq, lease.Stream
	}
}

func (c *claims) sorted() []OpenTurn {
	return slices.SortedFunc(maps.Values(c.open), func(a, b OpenTurn) int { return cmp.Compare(a.Seq, b.Seq) })
}
