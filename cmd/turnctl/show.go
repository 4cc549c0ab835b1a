package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/subjects"
)

// A turn is found by its ids, by the tool_call_id of an event of it (show_find.go) or by its journal key (key) and read as a
// whole (turnReport); show_text.go prints it, and show_not_found.go explains why there is none.

func (a *app) show() *cobra.Command {
	var cfg config.Turnctl
	var turn events.TurnID
	var raw string
	var payload bool
	c := a.command(&cobra.Command{
		Use:   "show CHAT TURN|TOOL_CALL_ID",
		Short: "Show all records of one turn",
		Long: `Show reads the journal of a turn directly from the server: it works without any worker. It prints the
state (unclaimed, running, parked, ended), every record with its time, owner, epoch and lease, the size
of the arguments, and the response. Arguments and results are shown with --payload only, private records
never.

Of a program (a plan or an orchestration) it also prints the steps in the order of the program: when each
was called, how it ended, and which answer it waits for. The tool_call_id of a step or question, for
example turn-7#1 or turn-7#1/approval, prints that step alone, with its records, call, questions and
response; -o json has the whole turn and the id of the step.

If a turn key was used again with other data (on_key_reuse: run), that turn has a separate journal key,
which show prints and --key takes.

Exit code: 0 the turn was found, 1 it was not found or could not be read.`,
		Example: `  turnctl show chat-42 turn-7
  turnctl show chat-42 turn-7 --app acme --run 3 --payload
  turnctl show chat-42 turn-7#1 --payload
  turnctl show --key acme.chat-42.f0123456789abcdef-0-turn-7.0`,
		Args: cli.Arguments(0, 2, "a turn"),
	}, &cfg, func(ctx context.Context, args []string) error {
		switch {
		case raw == "" && len(args) != 2:
			return cli.Usagef("show: a turn is required: turnctl show CHAT TURN, or --key KEY")
		case raw != "" && len(args) != 0:
			return cli.Usagef("show: --key and CHAT TURN are mutually exclusive: omit one")
		case raw == "":
			turn.Chat, turn.Turn = args[0], args[1]
			if turn.Chat == "" || turn.Turn == "" {
				return cli.Usagef("show: chat %q and turn %q: neither may be empty", turn.Chat, turn.Turn)
			}
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		key, err := s.key(turn, raw)
		if err != nil {
			return err
		}
		l, err := s.turnReport(ctx, key, payload)
		if errors.Is(err, errNoRecord) && raw == "" {
			l, err = s.byCallID(ctx, turn, payload)
		}
		if errors.Is(err, errNoRecord) {
			return s.missing(ctx, key, turn)
		}
		if err != nil {
			return err
		}
		return a.print(cfg.Format, l, func(w io.Writer) { l.text(w) })
	})
	c.Flags().StringVar(&turn.App, "app", events.DefaultApp, "tenant of the turn")
	c.Flags().StringVar(&turn.Run, "run", "", "run id of the turn, if its producer sends one")
	c.Flags().StringVar(&raw, "key", "", "journal key or event subject of the turn, instead of chat and turn")
	c.Flags().BoolVar(&payload, "payload", false, "also show arguments and results")
	return c
}

// key returns the journal key that the command line means.
func (s *server) key(turn events.TurnID, raw string) (subjects.Key, error) {
	if raw == "" {
		return subjects.TurnKey(turn.App, turn.Chat, turn.Run, turn.Turn), nil
	}
	if key, ok := s.space.EventKey(raw); ok {
		return key, nil
	}
	if key, ok := s.space.JournalKeyOf(raw); ok {
		raw = key
	}
	for _, key := range []string{raw, "e." + raw + "." + events.KindToolCall} {
		if r, ok := subjects.ParseKey(key); ok {
			return r.Key, nil
		}
	}
	return subjects.Key{}, cli.Usagef("show: invalid --key %.200q: use <app>.<chat>.<turn>.<call>, a journal key or an event subject, as turnctl ls -o json prints it", raw)
}

// turnReport reads everything about a turn, or returns errNoRecord.
func (s *server) turnReport(ctx context.Context, key subjects.Key, payload bool) (*turnReport, error) {
	if _, err := s.journalState(ctx); err != nil {
		return nil, err
	}
	turn, err := idempotency.Load(ctx, s.journal, key)
	if err != nil {
		return nil, err
	}
	if len(turn.Records) == 0 {
		return nil, errNoRecord
	}
	lease := ""
	if query.StateOfTurn(turn) == query.Running {
		lease = s.leaseMessage(ctx, turn.Lease)
	}
	if lease == leaseGone { // it may have ended between the two reads
		if turn, err = idempotency.Load(ctx, s.journal, key); err != nil {
			return nil, err
		}
	}
	l := newTurnReport(turn, payload)
	l.blobs = s.space.BlobsBucket()
	const most = 1000
	reuses, err := query.Reuses(ctx, s.journal, s.journal.Names, key, l.Run, l.Turn, most)
	if err != nil {
		return nil, err
	}
	for _, k := range reuses {
		l.Reuses = append(l.Reuses, k.String())
	}
	if err := s.readRetryOf(ctx, l); err != nil {
		return nil, err
	}
	if l.State == query.Running {
		l.LeaseMessage = lease
	}
	l.Meaning = l.meaning()
	return l, nil
}

// readRetryOf notes the retry of a program that has failed, if it has the usual key.
func (s *server) readRetryOf(ctx context.Context, l *turnReport) error {
	if l.State != query.Ended || l.Effect != string(events.EffectProgram) || l.Response != nil && l.Response.Success {
		return nil
	}
	id := events.TurnID{App: l.App, Chat: l.Chat, Run: l.Run, Turn: events.RetryKey(l.Turn)}
	claim, err := s.journal.Last(ctx, keyOfTurn(id).Public(events.RecordCall))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	if e, err := events.ReadCall(claim.Data); err == nil && e.ResumeOf == l.Turn {
		l.RetriedAs = id.Turn
	}
	return nil
}

// leaseMessage reports whether the message of a lease is still in its stream.
func (s *server) leaseMessage(ctx context.Context, lease idempotency.Lease) string {
	if lease.Seq == 0 {
		return leaseUnknown
	}
	switch held, err := sweep.LeaseHeld(s.js, s.space)(ctx, lease); {
	case err != nil:
		return leaseUnknown
	case held:
		return leaseThere
	default:
		return leaseGone
	}
}
