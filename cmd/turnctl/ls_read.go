package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// list reads headers backwards in growing windows until it has enough turns, keeps the newest claims (newest), and
// only then reads the records of those (fetch). So the cost depends on the number of listed turns, not on the size
// of the journal.

// maxOpen bounds the open turns that are remembered while the journal is read.
const maxOpen = 100_000

// list returns the newest turns.
func (s *server) list(ctx context.Context, want listSettings, now time.Time) (*listing, error) {
	state, err := s.journalState(ctx)
	if err != nil {
		return nil, err
	}
	l := &listing{Turns: []listed{}, Since: now.Add(-want.since).UTC()}
	found, more, err := s.newestClaims(ctx, want, state, l.Since)
	if err != nil {
		return nil, err
	}
	l.More = more
	for _, c := range found {
		t, err := s.fetch(ctx, c)
		if err != nil {
			return nil, err
		}
		if t != nil && (!want.open || t.State != query.Ended) {
			l.Turns = append(l.Turns, *t)
		}
	}
	return l, nil
}

// newestClaims returns the newest claims of turns, or texts of messages, and whether there are more.
func (s *server) newestClaims(ctx context.Context, want listSettings, state *jetstream.StreamState, since time.Time) (found []kept, more bool, err error) {
	err = backwards(state, false, s.beganBefore(ctx, since), func(from, to uint64) (enough bool, err error) {
		found, err = s.window(ctx, want, from, to, since)
		return len(found) > want.limit, err
	})
	if more = len(found) > want.limit; more {
		found = found[len(found)-want.limit:]
	}
	return found, more, err
}

// journalState reads how many records the journal has.
func (s *server) journalState(ctx context.Context) (*jetstream.StreamState, error) {
	stream, err := s.js.Stream(ctx, s.space.TurnsStream())
	if err != nil {
		return nil, fmt.Errorf("open the journal %s: %w", s.space.TurnsBucket(), unprovisioned(err))
	}
	return &stream.CachedInfo().State, nil
}

// beganBefore returns a check whether the first record of a window of the journal is older than a time.
func (s *server) beganBefore(ctx context.Context, since time.Time) func(from uint64) (bool, error) {
	return func(from uint64) (bool, error) {
		r, err := s.journal.Next(ctx, ">", from)
		if errors.Is(err, idempotency.ErrNotFound) {
			return false, nil
		}
		return err == nil && r.Time.Before(since), err
	}
}

// window reads the headers of claims and responses from start to last and returns the newest
// claims, or texts of messages, one more than asked for so that it shows whether there are older ones.
func (s *server) window(ctx context.Context, want listSettings, start, last uint64, since time.Time) ([]kept, error) {
	app, chat := subjects.Token(want.app), subjects.Token(want.chat)
	k := newest{limit: want.limit + 1, open: want.open}
	claim := events.RecordCall
	if want.messages {
		claim = events.RecordText
	}
	err := s.headers(ctx, start, last, func(key subjects.Record, seq uint64, at time.Time) {
		switch {
		case key.Private || key.ID != "" || key.Call != subjects.SingleCall || // steps of programs are not turns
			want.app != "" && key.App != app || want.chat != "" && key.Chat != chat:
		case key.Kind == events.KindToolResponse && want.open:
			k.ended(whole(key.Key))
		case key.Kind == claim && !at.Before(since):
			k.add(whole(key.Key), seq)
		}
	})
	return k.list(), err
}

// headers reads the headers of the journal from start to last in order.
func (s *server) headers(ctx context.Context, start, last uint64, each func(subjects.Record, uint64, time.Time)) error {
	read := jsapi.Headers{JS: s.js, Timeout: s.timeout}
	err := read.Read(ctx, s.space.TurnsStream(), start, last, func(m jetstream.Msg, meta *jetstream.MsgMetadata) {
		if name, ok := s.space.JournalKeyOf(m.Subject()); ok {
			if key, ok := subjects.ParseKey(name); ok {
				each(key, meta.Sequence.Stream, meta.Timestamp)
			}
		}
	})
	if err != nil {
		return unprovisioned(err)
	}
	return nil
}

// newest keeps the last claims or questions that it is given: limit of them, or, where only open ones are
// wanted, all that have not ended yet, up to maxOpen.
type newest struct {
	limit int
	open  bool
	kept  []kept
	gone  map[subjects.Record]bool // ended, and still among kept
}

// kept is a question, or a turn, whose record is its key only.
type kept struct {
	subjects.Record

	seq uint64
}

// whole stands for all that a turn or a step has asked, and for the turn itself.
func whole(key subjects.Key) subjects.Record { return subjects.Record{Key: key} }

func (n *newest) add(r subjects.Record, seq uint64) {
	most := n.limit
	if n.open {
		most = maxOpen
	}
	if len(n.kept) >= 2*most || n.isGone(r) { // what has ended before is of an earlier generation of the key
		n.trim(most)
	}
	n.kept = append(n.kept, kept{r, seq})
}

// isGone reports whether a turn, a question, or the turn of a question has ended. A question of a step ends with the step, or its turn.
func (n *newest) isGone(r subjects.Record) bool {
	return n.gone[r] || n.gone[whole(r.Key)] || n.gone[whole(r.OfTurn())]
}

// ended takes out a question, or a turn with its questions.
func (n *newest) ended(r subjects.Record) {
	if n.gone == nil {
		n.gone = make(map[subjects.Record]bool)
	}
	n.gone[r] = true
	if len(n.gone) >= maxOpen {
		n.trim(maxOpen)
	}
}

// trim drops what has ended and all but the newest.
func (n *newest) trim(most int) {
	n.kept = slices.DeleteFunc(n.kept, func(k kept) bool { return n.isGone(k.Record) })
	clear(n.gone)
	if len(n.kept) > most {
		n.kept = slices.Delete(n.kept, 0, len(n.kept)-most)
	}
}

func (n *newest) list() []kept {
	n.trim(n.limit)
	return n.kept
}

// fetch reads the events of a listed turn. It returns nil for one that expired meanwhile.
func (s *server) fetch(ctx context.Context, c kept) (*listed, error) {
	turn, err := idempotency.LoadEnds(ctx, s.journal, c.Key)
	if err == nil && turn.Response == nil { // whether it is parked is in other records
		turn, err = idempotency.Load(ctx, s.journal, c.Key)
	}
	if err != nil || turn.Claim == nil || turn.Claim.Seq != c.seq {
		return nil, err
	}
	l := newTurnReport(turn, false)
	t := &listed{
		Seq: c.seq, Time: turn.Claim.Time.UTC(), Owner: turn.Claim.Meta.Owner, Key: l.Key, App: l.App, Chat: l.Chat, Run: l.Run, Turn: l.Turn,
		Workflow: l.Workflow, Tool: l.Tool, State: l.State, Reused: l.Call != nil && reused(c.Key, l.Run, l.Turn),
	}
	for i := range l.Records {
		t.Error = cmp.Or(l.Records[i].Error, t.Error)
	}
	if turn.Response != nil {
		took := milliseconds(turn.Response.Time.Sub(turn.Claim.Time))
		t.TotalMS = &took
	}
	if l.Response != nil {
		t.Outcome = l.Response.outcome()
	}
	return t, nil
}

// outcome names how a turn ended.
func (r *answerFacts) outcome() string {
	switch {
	case r.Code != "":
		return string(r.Code)
	case r.Status == events.StatusOK && !r.Success:
		return "no success"
	default:
		return r.Status
	}
}
