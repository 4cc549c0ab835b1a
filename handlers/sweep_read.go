package handlers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// readAtOnce is how many sequences are read before what was found is kept. No header is read
// again after that.
const readAtOnce = 100_000

// read reads the headers of the journal that no sweep has read, and puts the turns that have no
// response among them behind the open ones.
func (r *round) read(ctx context.Context, scope Scope) error {
	name := r.Space.TurnsStream()
	stream, err := r.JS.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("sweep: stream %s: %w", name, err)
	}
	end := stream.CachedInfo().State
	if r.state.From > end.LastSeq+1 { // another journal than the one that the last sweep read
		r.state = SweepState{First: r.state.Next, Next: r.state.Next}
	}
	for from := max(r.state.From, end.FirstSeq); from <= end.LastSeq; from = r.state.From {
		last := min(from+readAtOnce-1, end.LastSeq)
		found := newClaims(scope)
		err := Headers{JS: r.JS, Rate: r.Rate}.Read(ctx, name, from, last, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
			r.out.Headers++
			key, _ := r.Space.JournalKeyOf(m.Subject())
			if rec, ok := subjects.ParseKey(key); ok {
				found.add(rec, m, meta)
			}
		})
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		open := found.sorted()
		r.behind = append(r.behind, open...)
		r.state.Open += len(open)
		r.state.From = last + 1
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

// add takes note of a record.
func (c *claims) add(r subjects.Record, m jetstream.Msg, meta *jetstream.MsgMetadata) {
	if !c.in(r.Key) {
		return
	}
	o, known := c.open[r.Key]
	switch {
	case r.Private && idempotency.Secrecy(m.Headers().Get(idempotency.HeaderSecret)) == idempotency.Sealed:
		if !known { // claimed in an earlier part
			o = OpenTurn{Key: r.String(), Seq: meta.Sequence.Stream}
		}
		o.Secret = true
	case r.Private || r.ID != "" || r.Call != subjects.SingleCall:
		return
	case r.Kind == events.KindToolResponse:
		if !o.Secret { // else it is looked at once more, to erase them
			delete(c.open, r.Key)
			return
		}
		o.At = 0
	case r.Kind != events.KindToolCall:
		return
	default:
		o.Key, o.Seq, o.At = r.String(), meta.Sequence.Stream, meta.Timestamp.Unix()
	}
	c.open[r.Key] = o
}

func (c *claims) sorted() []OpenTurn {
	return slices.SortedFunc(maps.Values(c.open), func(a, b OpenTurn) int { return cmp.Compare(a.Seq, b.Seq) })
}
