package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// Questions are listed as turns are (ls_read.go): headers are read backwards in growing windows, newest keeps the
// questions without an answer, acknowledgement or response, and a questionFilter then reads those and applies the
// filters that need their contents.

// questionsSettings selects what turnctl questions ls lists.
type questionsSettings struct {
	place

	workflow string
	expiring time.Duration // 0: any
	since    time.Duration
	limit    int
}

func (a *app) questionsLs() *cobra.Command {
	var cfg config.Turnctl
	var want questionsSettings
	c := a.command(&cobra.Command{
		Use:   "ls",
		Short: "List open questions",
		Long: `Ls lists the newest open questions, the newest last: when and in which chat each was asked, the tool
(the UI tool that people see, else the function), the user, and when it expires. With --expiring it
lists those that expire within this time, the soonest first. It reads the journal backwards in
growing windows, headers only, and then the listed questions.`,
		Example: `  turnctl questions ls
  turnctl questions ls --chat chat-42
  turnctl questions ls --workflow Orders --expiring 1h -o json`,
		Args: cli.NoArguments("--chat"),
	}, &cfg, func(ctx context.Context, _ []string) error {
		switch {
		case want.limit < 1 || want.limit > maxListed:
			return cli.Usagef("questions ls: invalid --limit %d: use 1 to %d", want.limit, maxListed)
		case want.since <= 0:
			return cli.Usagef("questions ls: invalid --since %s: use a positive duration, for example --since=24h", want.since)
		case want.expiring < 0:
			return cli.Usagef("questions ls: invalid --expiring %s: use a positive duration, for example --expiring=1h", want.expiring)
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, err := s.listQuestions(ctx, &want, a.now())
		if err != nil {
			return err
		}
		return a.print(cfg.Format, l, func(w io.Writer) { l.text(w, &want) })
	})
	want.flags(c)
	c.Flags().StringVar(&want.workflow, "workflow", "", "only this workflow")
	c.Flags().DurationVar(&want.expiring, "expiring", 0, "only questions that expire within this time")
	durationFlag(c, &want.since, "since", provision.DefaultMaxTurnLife, "how far to go back")
	c.Flags().IntVar(&want.limit, "limit", 20, fmt.Sprintf("how many questions, at most %d", maxListed))
	return c
}

// questionList is the output of turnctl questions ls.
type questionList struct {
	Questions questions `json:"questions"` // the newest last; with --expiring the soonest first
	Since     time.Time `json:"since"`     // nothing older was read
	More      bool      `json:"more"`      // there are more
}

// listQuestions lists open questions.
func (s *server) listQuestions(ctx context.Context, want *questionsSettings, now time.Time) (*questionList, error) {
	state, err := s.journalState(ctx)
	if err != nil {
		return nil, err
	}
	l := &questionList{Since: now.Add(-want.since).UTC()}
	f := &questionFilter{want: want, until: now.Add(want.expiring), server: s, read: map[uint64]*question{}}
	err = backwards(state, want.expiring > 0, s.beganBefore(ctx, l.Since), func(from, to uint64) (enough bool, err error) {
		open, err := s.openQuestions(ctx, want, from, to, l.Since)
		if err != nil {
			return false, err
		}
		l.Questions, l.More, err = f.newest(ctx, open)
		return l.More, err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// openQuestions reads headers of the journal, and returns the open questions, the newest last.
func (s *server) openQuestions(ctx context.Context, want *questionsSettings, from, to uint64, since time.Time) ([]kept, error) {
	app, chat := want.tokens()
	open := newest{limit: maxOpen, open: true}
	err := s.headers(ctx, from, to, func(key subjects.Record, seq uint64, at time.Time) {
		switch {
		case app != idempotency.AnyToken && key.App != app || chat != idempotency.AnyToken && key.Chat != chat:
		case key.Kind == events.RecordAsk && !key.Private && !at.Before(since):
			open.add(key, seq)
		case key.Kind == events.RecordAck, key.Kind == events.RecordAnswer:
			open.ended(subjects.Record{Key: key.Key, Kind: events.RecordAsk, ID: key.ID})
		case key.Kind == events.RecordResponse, key.Kind == events.RecordCancel:
			open.ended(whole(key.Key))
		}
	})
	return open.list(), err
}

// questionFilter reads questions and keeps those that are listed.
type questionFilter struct {
	want   *questionsSettings
	until  time.Time // with --expiring
	server *server
	read   map[uint64]*question // by sequence, nil for one that was deleted
}

// newest returns which of the open questions are listed, and whether there are more. With --expiring it reads
// all of them.
func (f *questionFilter) newest(ctx context.Context, open []kept) (found questions, more bool, err error) {
	found = questions{}
	for _, asked := range slices.Backward(open) {
		q, err := f.question(ctx, asked.seq)
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

func (f *questionFilter) match(q *question) bool {
	return (f.want.workflow == "" || q.Workflow == f.want.workflow) &&
		(f.want.expiring == 0 || !q.ExpiresAt.IsZero() && q.ExpiresAt.Before(f.until))
}

// question reads a question once; nil if it was deleted.
func (f *questionFilter) question(ctx context.Context, seq uint64) (*question, error) {
	if q, ok := f.read[seq]; ok {
		return q, nil
	}
	r, err := f.server.journal.At(ctx, seq)
	if errors.Is(err, idempotency.ErrNotFound) {
		f.read[seq] = nil
		return nil, nil //nolint:nilnil // nothing to list
	}
	if err != nil {
		return nil, err
	}
	fact := newRecordFact(&r, r.Time)
	q := newQuestion(&r, &fact, false)
	f.read[seq] = &q
	return &q, nil
}

func (l *questionList) text(w io.Writer, want *questionsSettings) {
	if len(l.Questions) == 0 {
		fmt.Fprintf(w, "no open question in the last %s%s: a running turn may not have asked yet, turnctl ls lists turns\n", agoText(want.since), want.where())
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

func (s *questionsSettings) where() string {
	text := (&listSettings{app: s.app, chat: s.chat}).where()
	if s.workflow != "" {
		text += " of workflow " + id(s.workflow)
	}
	if s.expiring > 0 {
		text += " that expires within " + durationText(s.expiring)
	}
	return text
}
