package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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
// whole (turnReport); show_text.go prints it, and show_not_found.go explains why there is none. A message is found by its id or
// its journal key (message_report.go, message_text.go), a chat by its id (show_chat.go).

func (a *app) show() *cobra.Command {
	var cfg config.Turnctl
	var turn events.TurnID
	var raw string
	var payload, message bool
	var c *cobra.Command
	c = a.command(&cobra.Command{
		Use:   "show CHAT [TURN|MESSAGE|TOOL_CALL_ID]",
		Short: "Show all records of one turn or message, or what a chat has",
		Long: `Show reads the journal of a turn directly from the server: it works without any worker. It prints the
state (unclaimed, running, parked, ended), every record with its time, owner, epoch and lease, the size
of the arguments, and the response. Arguments and results are shown with --payload only, private records
never.

Of a program (a plan or an orchestration) it also prints the steps in the order of the program: when each
was called, how it ended, and which answer it waits for. The tool_call_id of a step or question, for
example turn-7#1 or turn-7#1/approval, prints that step alone, with its records, call, questions and
response; -o json has the whole turn and the id of the step.

Of a message of an agent or a user it prints the text, what was repaired in its object, whether people see
it, the context variables that it has set, its turns (corrections too), the models that were asked, and the
handoff. A message and its turn may have the same id: then show prints the turn and, below it, the message;
with --message only the message. Of a chat alone it prints the newest messages and turns and, as they are
now, the context variables that were set.

If a turn key was used again with other data (on_key_reuse: run), that turn has a separate journal key,
which show prints and --key takes.

Exit code: 0 the turn, message or chat was found, 1 it was not found or could not be read.`,
		Example: `  turnctl show chat-42 turn-7
  turnctl show chat-42
  turnctl show chat-42 message-3 --message
  turnctl show chat-42 turn-7 --app acme --run 3 --payload
  turnctl show acme/chat-42 turn-7
  turnctl show chat-42 turn-7#1 --payload
  turnctl show --key acme.chat-42.f0123456789abcdef-0-turn-7.0`,
		Args: cli.Arguments(0, 2, "a turn, a message or a chat"),
	}, &cfg, func(ctx context.Context, args []string) error {
		switch {
		case raw == "" && len(args) == 0:
			return cli.Usagef("show: a chat is required: turnctl show CHAT, turnctl show CHAT TURN, or --key KEY")
		case raw != "" && len(args) != 0:
			return cli.Usagef("show: --key and CHAT are mutually exclusive: omit one")
		case message && len(args) != 2:
			return cli.Usagef("show: --message requires the id of a message: turnctl show CHAT MESSAGE --message")
		case len(args) == 2 && slices.Contains(args, ""):
			return cli.Usagef("show: chat %q and turn %q: neither may be empty", args[0], args[1])
		case len(args) == 1 && args[0] == "":
			return cli.Usagef("show: the id of the chat is empty: turnctl show CHAT")
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		if len(args) > 0 && !c.Flags().Changed("app") {
			turn.App, args[0] = s.splitTenant(ctx, args[0])
		}
		if len(args) == 1 {
			l, err := s.chatReport(ctx, turn.App, args[0])
			if err != nil {
				return err
			}
			return a.print(cfg.Format, l, func(w io.Writer) { l.text(w) })
		}
		if len(args) == 2 {
			turn.Chat, turn.Turn = args[0], args[1]
		}
		l, err := s.shown(ctx, turn, raw, payload, message)
		if err != nil {
			return err
		}
		return a.print(cfg.Format, l, l.text)
	})
	c.Flags().StringVar(&turn.App, "app", events.DefaultApp, "tenant of the turn")
	c.Flags().StringVar(&turn.Run, "run", "", "run id of the turn, if its producer sends one")
	c.Flags().StringVar(&raw, "key", "", "journal key or event subject of the turn, instead of chat and turn")
	c.Flags().BoolVar(&payload, "payload", false, "also show arguments, results and objects")
	c.Flags().BoolVar(&message, "message", false, "the id is the id of a message, also if a turn has it")
	return c
}

// printable is what show prints.
type printable interface{ text(w io.Writer) }

// shown reads the turn or message that the command line means.
func (s *server) shown(ctx context.Context, turn events.TurnID, raw string, payload, message bool) (printable, error) {
	key, err := s.key(turn, raw)
	if err != nil {
		return nil, err
	}
	id := subjects.MessageKey(turn.App, turn.Chat, turn.Run, turn.Turn)
	if raw != "" {
		id = key
	}
	if message || raw != "" {
		m, err := s.messageReport(ctx, id, payload)
		switch {
		case err == nil:
			return &onlyMessage{m}, nil
		case !errors.Is(err, errNoRecord):
			return nil, err
		case message:
			return nil, fmt.Errorf("no message %.200q in chat %.200q of app %.200q: turnctl ls --messages lists messages; a message with a run id needs --run", turn.Turn, turn.Chat, turn.App)
		}
	}
	l, err := s.turnReport(ctx, key, payload)
	if err == nil {
		return l, s.readMessageOf(ctx, l, id, payload)
	}
	if errors.Is(err, errNoRecord) && raw == "" {
		m, errMessage := s.messageReport(ctx, id, payload)
		if !errors.Is(errMessage, errNoRecord) {
			return &onlyMessage{m}, errMessage
		}
		if l, err = s.byCallID(ctx, turn, payload); err == nil {
			return l, nil
		}
	}
	if errors.Is(err, errNoRecord) {
		err = s.missing(ctx, key, turn)
	}
	return nil, err
}

// onlyMessage is the output for a message.
type onlyMessage struct {
	Message *messageReport `json:"message"`
}

func (m *onlyMessage) text(w io.Writer) { m.Message.text(w) }

// readMessageOf notes the message that has made a turn, or that has its id.
func (s *server) readMessageOf(ctx context.Context, l *turnReport, id subjects.Key, payload bool) error {
	key := l.journalKey.OfTurn()
	if key.Turn = l.message; l.message == "" {
		if id == l.journalKey {
			return nil
		}
		key = id
	}
	m, err := s.messageReport(ctx, key, payload)
	if errors.Is(err, errNoRecord) {
		return nil
	}
	l.Message = m
	return err
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
