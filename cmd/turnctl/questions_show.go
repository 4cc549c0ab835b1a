package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/query"
)

// Show prints what was asked and how to answer it, but never an answer, which may be secret.

func (a *app) questionsShow() *cobra.Command {
	var cfg config.Turnctl
	var where place
	var payload bool
	c := a.command(&cobra.Command{
		Use:   "show [CHAT] TOOL_CALL_ID",
		Short: "Show one question and its outcome",
		Long: `Show prints everything about one question but its answer: the user who is asked, the subject for the
answer, when it expires, and its outcome. The content that the question shows is printed with
--payload. If several turns have a question with this id, select one with CHAT and --app.`,
		Example: `  turnctl questions show turn-7/1
  turnctl questions show chat-42 turn-7/approval --payload`,
	}, &cfg, func(ctx context.Context, args []string) error {
		toolCallID, err := where.question("show", args)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, q, err := s.question(ctx, where, toolCallID, payload)
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

// shownQuestion is the output of turnctl questions show.
type shownQuestion struct {
	question

	TurnState query.TurnState `json:"turn_state"`
	Epoch     int             `json:"epoch"`
	Owner     string          `json:"owner,omitempty"`
}

// stateText is the state of a question for people.
func (q *question) stateText() string {
	text := string(q.State)
	if q.DecidedBy != "" {
		text += " by " + id(q.DecidedBy)
	}
	if q.State == api.Open && !q.ExpiresAt.IsZero() {
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
	add("shows", plural.Of(q.ShownBytes, "byte")+inBlob(q.ShownBlob))
	add("answer to", q.Subject)
	add("turn", string(q.TurnState)+", turnctl show --key "+q.Key)
	table(w, 2, rows, 1)
	if q.Error != "" {
		fmt.Fprintln(w, wrap("damaged: "+clean(q.Error, 500), 2))
	}
	printTree(w, "shows", q.Shown)
	printTree(w, "schema of the answer", q.Schema)
	if q.State == api.Open {
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
