package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxCallID is how much of a tool_call_id is printed: all of it, it is there to be copied.
const maxCallID = 1200

func (a *app) waits() *cobra.Command {
	c := &cobra.Command{
		Use:   "waits",
		Short: "Look at questions that wait for people, and end them",
		Long: `Waits are questions that tools have asked people and that nobody has answered yet. A turn that
waits costs no worker anything. These commands read the journal straight from the server; expire
and cancel need a worker. To answer one: publisher answer CHAT TOOL_CALL_ID JSON.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Usagef("waits: ls, show, expire or cancel: see %s --help", c.CommandPath())
		},
	}
	c.AddCommand(a.waitsLs(), a.waitsShow(), a.waitsExpire(), a.waitsCancel())
	return c
}

// place narrows down where a question is looked for.
type place struct{ app, chat string }

func (p *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.app, "app", "", "only this tenant")
	c.Flags().StringVar(&p.chat, "chat", "", "only this chat")
}

func (p *place) tokens() (app, chat string) {
	app, chat = idempotency.AnyToken, idempotency.AnyToken
	if p.app != "" {
		app = subjects.Token(p.app)
	}
	if p.chat != "" {
		chat = subjects.Token(p.chat)
	}
	return app, chat
}

// hint says how to find what is not found without a chat.
func (p *place) hint() string {
	if p.chat == "" {
		return " (one whose time is over is found with --chat only)"
	}
	return ""
}

func (a *app) waitsShow() *cobra.Command {
	var cfg config.Turnctl
	var where place
	var payload bool
	c := a.command(&cobra.Command{
		Use:   "show TOOL_CALL_ID",
		Short: "Show one question and what became of it",
		Long: `Show tells all about one question but its answer: who is asked what, where an answer goes to, how
long it is waited for, and how it was decided. What the question shows is printed with --payload.
Where several turns have a question with that id, --app and --chat tell them apart.`,
		Example: `  turnctl waits show turn-7/1
  turnctl waits show turn-7/approval --chat chat-42 --payload`,
		Args: oneQuestion("show"),
	}, &cfg, func(ctx context.Context, args []string) error {
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, q, err := s.asked(ctx, where, args[0], payload)
		if err != nil {
			return err
		}
		out := &shownQuestion{question: *q, TurnState: l.State, Epoch: l.Epoch, Owner: l.Owner}
		return a.print(cfg.Format, out, out.text)
	})
	where.flags(c)
	c.Flags().BoolVar(&payload, "payload", false, "print what the question shows, and the schema of its answer")
	return c
}

// oneQuestion wants the id of one question.
func oneQuestion(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return cli.Usagef("waits %s: name one question: turnctl waits %s TOOL_CALL_ID, as turnctl waits ls prints it", command, command)
		}
		return nil
	}
}

// shownQuestion is the outcome of turnctl waits show.
type shownQuestion struct {
	question

	TurnState string `json:"turn_state"`
	Epoch     int    `json:"epoch"`
	Owner     string `json:"owner,omitempty"`
}

var (
	// errNoQuestion says that there is no such question.
	errNoQuestion = errors.New("no such question")
	// errNoQuestionID says that something cannot be the id of a question.
	errNoQuestionID = errors.New("no id of a question")
)

// asked finds a question by its id, and reads its turn.
func (s *server) asked(ctx context.Context, where place, toolCallID string, payload bool) (*life, *question, error) {
	call, ask, ok := events.ParseQuestionID(toolCallID)
	if !ok {
		return nil, nil, cli.Usagef("waits: %.200q is %w, want <tool_call_id of the call>/<question>, as turnctl waits ls prints it", toolCallID, errNoQuestionID)
	}
	names, err := s.names(ctx, where, call, subjects.Token(ask))
	if err != nil {
		return nil, nil, err
	}
	switch len(names) {
	case 0:
		return nil, nil, fmt.Errorf("%w as %.200q%s: turnctl waits ls lists those that are open", errNoQuestion, toolCallID, where.hint())
	case 1:
	default:
		return nil, nil, severalTurns(toolCallID, names)
	}
	l, err := s.life(ctx, names[0].Key, payload)
	if err != nil {
		return nil, nil, err
	}
	q := l.Questions.find(names[0].ID)
	if q == nil {
		return nil, nil, fmt.Errorf("%w as %.200q any more", errNoQuestion, toolCallID)
	}
	return l, q, nil
}

// names lists the questions that an id means. Without a chat it looks among the timers that end
// questions, because the journal would have to go through the names of all turns.
func (s *server) names(ctx context.Context, where place, call, ask string) ([]subjects.Record, error) {
	app, chat := where.tokens()
	if where.chat == "" {
		calls := subjects.Key{App: app, Chat: chat, Turn: idempotency.AnyToken, Call: idempotency.AnyToken}
		return idempotency.FindQuestions(calls, call, func(calls subjects.Key) ([]subjects.Record, error) {
			return s.timers(ctx, s.space.AskTimers(calls, ask))
		})
	}
	journal, err := s.journal()
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	names, err := journal.FindQuestions(ctx, app, chat, call, ask)
	return names, unprovisioned(err)
}

// timers lists the questions whose timers match a filter.
func (s *server) timers(ctx context.Context, filter string) ([]subjects.Record, error) {
	stream, err := s.js.Stream(ctx, s.space.TimersStream())
	if err != nil {
		return nil, fmt.Errorf("open the timers %s: %w", s.space.TimersStream(), unprovisioned(err))
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("list the timers: %w", err)
	}
	var found []subjects.Record
	for _, name := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if key, ask, ok := s.space.ParseAskTimer(name); ok {
			found = append(found, subjects.Record{Key: key, Kind: subjects.KindAsk, ID: ask})
		}
	}
	return found, nil
}

// severalTurns says how to tell turns with the same id apart.
func severalTurns(toolCallID string, names []subjects.Record) error {
	const most = 3
	named := names[:min(len(names), most)]
	flags := make([]string, 0, len(named))
	for _, name := range named {
		flags = append(flags, "--app "+argument(shown(name.App))+" --chat "+argument(shown(name.Chat)))
	}
	return cli.Usagef("%d turns have asked %.200q: tell them apart with %s", len(names), toolCallID, strings.Join(flags, ", or with "))
}

// stateText is the state of a question for people.
func (q *question) stateText() string {
	text := q.State
	if q.DecidedBy != "" {
		text += " by " + id(q.DecidedBy)
	}
	if q.State == askOpen && !q.ExpiresAt.IsZero() {
		text += ", until " + second(q.ExpiresAt)
	}
	if q.TakenEpoch > 0 {
		text += fmt.Sprintf(", taken in epoch %d", q.TakenEpoch)
	}
	return text
}

func (q *shownQuestion) text(w io.Writer) {
	fmt.Fprintf(w, "question %s of chat %s, app %s\n%s\n\n", clean(q.ToolCallID, maxCallID), id(q.Chat), id(q.App), q.stateText())
	var rows [][]string
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, clean(value, maxCallID)})
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return stamp(t)
	}
	add("workflow", q.Workflow)
	add("agent", q.Agent)
	add("tool", q.Tool)
	add("component", q.Component)
	add("display", q.Display)
	add("user", q.User)
	if q.Secret {
		add("secret", "the answer is stored encrypted")
	}
	add("asked", at(q.AskedAt))
	add("expires", at(q.ExpiresAt))
	add("decided", at(q.DecidedAt))
	add("shows", plural(q.ShownBytes, "byte")+inBlob(q.ShownBlob))
	add("answer to", q.Subject)
	add("turn", q.TurnState+", turnctl show --key "+q.Key)
	table(w, 2, rows, 1)
	if q.Error != "" {
		fmt.Fprintln(w, wrap("damaged: "+clean(q.Error, 500), 2))
	}
	printTree(w, "shows", q.Shown)
	printTree(w, "schema of the answer", q.Schema)
	if q.State == askOpen {
		fmt.Fprintf(w, "\nto answer it: publisher answer %s %s JSON%s\n", argument(q.Chat), argument(q.ToolCallID), forApp(q.App))
	}
}

// forApp is the flag that names a tenant, unless it is the default one.
func forApp(app string) string {
	if app == events.DefaultApp {
		return ""
	}
	return " --app " + argument(app)
}

// printTree prints a value under a title.
func printTree(w io.Writer, title string, v any) {
	if v == nil {
		return
	}
	text, err := events.AppendJSON(nil, v)
	if err != nil {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	valueText(w, text)
}
