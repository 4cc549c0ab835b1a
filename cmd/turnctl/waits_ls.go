package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// waitsSettings is what turnctl waits ls looks for.
type waitsSettings struct {
	place

	workflow string
	expiring time.Duration // 0: whenever
	since    time.Duration
	limit    int
}

func (a *app) waitsLs() *cobra.Command {
	var cfg config.Turnctl
	var want waitsSettings
	c := a.command(&cobra.Command{
		Use:   "ls",
		Short: "List open questions",
		Long: `Ls lists the newest questions that nobody has answered, the newest last: when each was asked, in which
chat, by what tool (the UI tool that people see, else the function), whom it is for, and until when an
answer is taken. With --expiring it lists
those that expire soonest, the soonest first. It reads the journal backwards in growing steps,
headers only, and then the questions that it lists.`,
		Example: `  turnctl waits ls
  turnctl waits ls --chat chat-42
  turnctl waits ls --workflow Orders --expiring 1h -o json`,
		Args: cli.NoArguments("--chat"),
	}, &cfg, func(ctx context.Context, _ []string) error {
		switch {
		case want.limit < 1 || want.limit > maxListed:
			return cli.Usagef("waits ls: --limit is %d, want 1 to %d", want.limit, maxListed)
		case want.since <= 0:
			return cli.Usagef("waits ls: --since is %s, want a duration over zero: --since=24h", want.since)
		case want.expiring < 0:
			return cli.Usagef("waits ls: --expiring is %s, want a duration over zero: --expiring=1h", want.expiring)
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, err := s.waiting(ctx, &want, a.now())
		if err != nil {
			return err
		}
		return a.print(cfg.Format, l, func(w io.Writer) { l.text(w, &want) })
	})
	want.flags(c)
	c.Flags().StringVar(&want.workflow, "workflow", "", "only this workflow")
	c.Flags().DurationVar(&want.expiring, "expiring", 0, "only what expires within this time")
	durationFlag(c, &want.since, "since", provision.DefaultMaxTurnLife, "how far to go back")
	c.Flags().IntVar(&want.limit, "limit", 20, fmt.Sprintf("how many questions, at most %d", maxListed))
	return c
}

// waitingList is the outcome of turnctl waits ls.
type waitingList struct {
	Questions questions `json:"questions"` // the newest last; with --expiring the soonest first
	Since     time.Time `json:"since"`     // nothing older was looked at
	More      bool      `json:"more"`      // there are more
}

// waiting lists open questions.
func (s *server) waiting(ctx context.Context, want *waitsSettings, now time.Time) (*waitingList, error) {
	stream, err := s.js.Stream(ctx, s.space.TurnsStream())
	if err != nil {
		return nil, fmt.Errorf("open the journal %s: %w", s.space.TurnsBucket(), unprovisioned(err))
	}
	journal, err := s.journal()
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	l := &waitingList{Since: now.Add(-want.since).UTC()}
	f := &askFilter{want: want, until: now.Add(want.expiring), journal: journal, seen: map[uint64]*question{}}
	state := stream.CachedInfo().State
	for window := uint64(firstWindow); ; window *= growth {
		start := state.FirstSeq
		if want.expiring == 0 && state.LastSeq >= start+window {
			start = state.LastSeq + 1 - window
		}
		whole := start <= state.FirstSeq
		if !whole {
			if whole, err = covers(ctx, journal, start, l.Since); err != nil {
				return nil, err
			}
		}
		open, err := s.openAsks(ctx, want, start, state, l.Since)
		if err != nil {
			return nil, err
		}
		if l.Questions, l.More, err = f.newest(ctx, open); err != nil {
			return nil, err
		}
		if whole || l.More {
			return l, nil
		}
	}
}

// openAsks reads the headers of what became of questions, and returns those that are open, the
// newest last.
func (s *server) openAsks(ctx context.Context, want *waitsSettings, start uint64, state jetstream.StreamState, since time.Time) ([]uint64, error) {
	app, chat := want.tokens()
	open := openSet{calls: map[subjects.Key]map[string]uint64{}}
	err := s.headers(ctx, start, state.LastSeq, func(key subjects.Record, seq uint64, at time.Time) {
		switch {
		case app != idempotency.AnyToken && key.App != app || chat != idempotency.AnyToken && key.Chat != chat:
		case key.Kind == subjects.KindAsk && !key.Private && !at.Before(since):
			open.add(key, seq)
		case key.Kind == subjects.KindAck, key.Kind == kindAnswer:
			open.remove(key)
		case key.Kind == events.KindToolResponse:
			delete(open.calls, key.Key)
		}
	})
	return open.list(), err
}

// openSet holds the questions that are open so far.
type openSet struct {
	calls map[subjects.Key]map[string]uint64 // sequences, by call and question
}

func (o *openSet) add(key subjects.Record, seq uint64) {
	if len(o.calls) >= maxOpen && o.calls[key.Key] == nil {
		return // it is listed once others are answered
	}
	if o.calls[key.Key] == nil {
		o.calls[key.Key] = map[string]uint64{}
	}
	o.calls[key.Key][key.ID] = seq
}

func (o *openSet) remove(key subjects.Record) {
	delete(o.calls[key.Key], key.ID)
	if len(o.calls[key.Key]) == 0 {
		delete(o.calls, key.Key)
	}
}

func (o *openSet) list() []uint64 {
	var seqs []uint64
	for _, asks := range o.calls {
		for _, seq := range asks {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// askFilter reads questions and keeps those that are wanted.
type askFilter struct {
	want    *waitsSettings
	until   time.Time // with --expiring
	journal *idempotency.KV
	seen    map[uint64]*question // by sequence, nil for one that is gone
}

// newest returns the questions that are listed, of those that are open, and whether there are
// more. With --expiring it looks at all of them.
func (f *askFilter) newest(ctx context.Context, open []uint64) (found questions, more bool, err error) {
	found = questions{}
	for _, seq := range slices.Backward(open) {
		q, err := f.read(ctx, seq)
		if err != nil {
			return nil, false, err
		}
		if q == nil || !f.match(q) {
			continue
		}
		if f.want.expiring == 0 && len(found) == f.want.limit {
			more = true
			break
		}
		found = append(found, *q)
	}
	if f.want.expiring == 0 {
		slices.Reverse(found)
		return found, more, nil
	}
	slices.SortStableFunc(found, func(a, b question) int { return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Seq, b.Seq)) })
	if more = len(found) > f.want.limit; more {
		found = found[:f.want.limit]
	}
	return found, more, nil
}

func (f *askFilter) match(q *question) bool {
	return (f.want.workflow == "" || q.Workflow == f.want.workflow) &&
		(f.want.expiring == 0 || !q.ExpiresAt.IsZero() && q.ExpiresAt.Before(f.until))
}

// read reads a question once; nil if it is gone.
func (f *askFilter) read(ctx context.Context, seq uint64) (*question, error) {
	if q, ok := f.seen[seq]; ok {
		return q, nil
	}
	r, err := f.journal.At(ctx, seq)
	if errors.Is(err, idempotency.ErrNotFound) {
		f.seen[seq] = nil
		return nil, nil //nolint:nilnil // nothing to list
	}
	if err != nil {
		return nil, err
	}
	fact := newRecordFact(&r, r.Time)
	q := newQuestion(&r, &fact, false)
	f.seen[seq] = &q
	return &q, nil
}

func (l *waitingList) text(w io.Writer, want *waitsSettings) {
	if len(l.Questions) == 0 {
		fmt.Fprintf(w, "no open question in the last %s%s\n", inWords(want.since), want.where())
		return
	}
	rows := [][]string{{"asked", "chat", "tool_call_id", "workflow", "tool", "user", "expires"}}
	var notes []string
	for i := range l.Questions {
		q := &l.Questions[i]
		expires := "-"
		if !q.ExpiresAt.IsZero() {
			expires = second(q.ExpiresAt)
		}
		rows = append(rows, []string{
			second(q.AskedAt), chatText(want.app, q.App, q.Chat), clean(q.ToolCallID, maxCallID), cell(q.Workflow), cell(q.Tool), cell(q.User), expires,
		})
		if q.Error != "" {
			notes = append(notes, fmt.Sprintf("%s: damaged: %s", clean(q.ToolCallID, maxCallID), clean(q.Error, 300)))
		}
	}
	table(w, 0, rows, 0, 1, 2, 4, 6)
	for _, note := range notes {
		fmt.Fprintln(w, note)
	}
	if l.More {
		fmt.Fprintln(w, "there are more: a larger --limit shows them")
	}
}

func (s *waitsSettings) where() string {
	text := (&listSettings{app: s.app, chat: s.chat}).where()
	if s.workflow != "" {
		text += " of workflow " + id(s.workflow)
	}
	if s.expiring > 0 {
		text += " that expires within " + inWords(s.expiring)
	}
	return text
}
