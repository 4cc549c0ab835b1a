package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// The list is read from the journal (ls_read.go): the headers of the newest claims, then the records of each
// listed turn. Columns that a next command needs, such as ids, are not cut.

// maxListed bounds how many turns one listing has.
const maxListed = 1000

// listSettings selects what turnctl ls lists.
type listSettings struct {
	app, chat string
	limit     int
	open      bool
	messages  bool // of agents and users, instead of turns
	since     time.Duration
}

func (a *app) ls() *cobra.Command {
	var cfg config.Turnctl
	var want listSettings
	c := a.command(&cobra.Command{
		Use:   "ls",
		Short: "List the newest turns, or the newest messages",
		Long: `Ls lists the newest turns of the journal, the newest last: when each was claimed, its chat, workflow and
tool, its outcome or that it is open, the time from claim to end, and the worker that claimed it. It
reads backwards in growing windows, headers only, until it has enough or reaches --since; then it reads
the events of the listed turns. With --messages it lists the messages of agents and users instead: whether
people see each, its turn, the next speaker, and the beginning of its text.`,
		Example: `  turnctl ls
  turnctl ls --app acme --chat chat-42 --since 24h
  turnctl ls --open --since 168h -o json
  turnctl ls --messages --chat chat-42`,
		Args: cli.NoArguments("--chat"),
	}, &cfg, func(ctx context.Context, _ []string) error {
		switch {
		case want.limit < 1 || want.limit > maxListed:
			return cli.Usagef("ls: invalid --limit %d: use 1 to %d", want.limit, maxListed)
		case want.since <= 0:
			return cli.Usagef("ls: invalid --since %s: use a positive duration, for example --since=1h", want.since)
		case want.open && want.messages:
			return cli.Usagef("ls: --open and --messages are mutually exclusive: omit one")
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		if want.messages {
			l, err := s.listMessages(ctx, want, a.now())
			if err != nil {
				return err
			}
			return a.print(cfg.Format, l, func(w io.Writer) { l.text(w, want) })
		}
		l, err := s.list(ctx, want, a.now())
		if err != nil {
			return err
		}
		return a.print(cfg.Format, l, func(w io.Writer) { l.text(w, want) })
	})
	c.Flags().StringVar(&want.app, "app", "", "only this tenant")
	c.Flags().StringVar(&want.chat, "chat", "", "only this chat")
	c.Flags().IntVar(&want.limit, "limit", 20, fmt.Sprintf("how many turns or messages, at most %d", maxListed))
	c.Flags().BoolVar(&want.open, "open", false, "only turns without a response")
	c.Flags().BoolVar(&want.messages, "messages", false, "messages of agents and users instead of turns")
	durationFlag(c, &want.since, "since", time.Hour, "how far to go back")
	return c
}

// listing is the output of turnctl ls.
type listing struct {
	Turns []listed  `json:"turns"` // the newest last
	Since time.Time `json:"since"` // nothing older was read
	More  bool      `json:"more"`  // there are older ones since then
}

// listed is one turn of a listing.
type listed struct {
	Seq      uint64          `json:"seq"` // of the claim
	Time     time.Time       `json:"time"`
	App      string          `json:"app_id"`
	Chat     string          `json:"chat_id"`
	Run      string          `json:"run_id,omitempty"`
	Turn     string          `json:"turn"`
	Workflow string          `json:"workflow,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	State    query.TurnState `json:"state"`             // running, parked, ended
	Outcome  string          `json:"outcome,omitempty"` // of an ended one: ok, or the code, or error
	TotalMS  *float64        `json:"total_ms"`          // claim to end, null while open
	Owner    string          `json:"owner,omitempty"`   // worker that claimed it
	Key      string          `json:"key"`               // for turnctl show --key
	Reused   bool            `json:"reused,omitempty"`  // its turn key was reused: it is found by its journal key only
	Error    string          `json:"error,omitempty"`   // what is wrong with its records
}

func (l *listing) text(w io.Writer, want listSettings) {
	if len(l.Turns) == 0 && !l.More {
		fmt.Fprintf(w, "no %s in the last %s%s: a longer --since reads further back\n", want.what(), agoText(want.since), want.where())
		return
	}
	rows := [][]string{{"time", "chat", "turn", "workflow", "tool", "state", "took", "owner"}}
	var notes []string
	for i := range l.Turns {
		t := &l.Turns[i]
		rows = append(rows, []string{
			second(t.Time), chatText(want.app, t.App, t.Chat), t.turnText(), cell(t.Workflow), cell(t.Tool), t.stateText(), t.took(), cell(t.Owner),
		})
		if t.Reused {
			notes = append(notes, fmt.Sprintf("%s: turnctl show --key %s", id(t.Turn), t.Key))
		}
		if t.Error != "" {
			notes = append(notes, fmt.Sprintf("%s: damaged: %s", clean(t.Key, maxKey), clean(t.Error, 300)))
		}
	}
	table(w, 0, rows, 0, 1, 2, 5, 6)
	for _, note := range notes {
		fmt.Fprintln(w, note)
	}
	if l.More {
		fmt.Fprintln(w, "there are older ones: a larger --limit shows them")
	}
}

func (s *listSettings) what() string {
	switch {
	case s.open:
		return "open turn"
	case s.messages:
		return "message"
	}
	return "turn"
}

func (s *listSettings) where() string {
	var b strings.Builder
	if s.app != "" {
		b.WriteString(" of app " + id(s.app))
	}
	if s.chat != "" {
		b.WriteString(" of chat " + id(s.chat))
	}
	return b.String()
}

// cell prints a name in a column, of which the beginning is enough.
func cell(s string) string {
	const widest = 28
	if s == "" {
		return "-"
	}
	return clean(s, widest)
}

// chatText also names the tenant, unless one was selected or it is the default tenant.
func chatText(selected, app, chat string) string {
	if selected != "" || app == events.DefaultApp {
		return id(chat)
	}
	return id(app) + "/" + id(chat)
}

func (t *listed) turnText() string {
	text := id(t.Turn)
	if t.Run != "" {
		text += " run " + id(t.Run)
	}
	if t.Reused {
		text += " (key reused)"
	}
	return text
}

func (t *listed) stateText() string {
	if t.State == query.Ended {
		return cell(t.Outcome)
	}
	return string(t.State)
}

func (t *listed) took() string {
	if t.TotalMS == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *t.TotalMS)
}

// reused reports whether a turn has another token than the one of its ids.
func reused(key subjects.Key, run, turn string) bool {
	return key.Turn != subjects.TurnToken(run, turn)
}
