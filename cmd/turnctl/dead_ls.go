package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
)

// The list has the headers of dead letters; identify also reads their contents, because only they name the turn or message.
// Contents that cannot be read leave the columns empty.

func (a *app) deadLs() *cobra.Command {
	var cfg config.Turnctl
	var f deadFilter
	var limit int
	c := a.command(&cobra.Command{
		Use:   "ls",
		Short: "List the newest dead letters",
		Long: `Ls lists the newest dead letters, the newest first: sequence, age, reason, kind, tenant, the
chat and turn or message if they are known, the sequence of the message in its stream, and its size.`,
		Example: `  turnctl dead ls
  turnctl dead ls --app acme --reason turn_conflict -o json`,
		Args: cli.NoArguments(""),
	}, &cfg, func(ctx context.Context, _ []string) error {
		if limit < 1 || limit > maxListed {
			return cli.Usagef("dead ls: invalid --limit %d: use 1 to %d", limit, maxListed)
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l := &deadListing{}
		if l.Letters, l.More, err = s.deadLetters(ctx, f, limit); err != nil {
			return err
		}
		if err := s.identify(ctx, l.Letters); err != nil {
			return err
		}
		if l.Letters == nil {
			l.Letters = []deadLetter{}
		}
		return a.print(cfg.Format, l, func(w io.Writer) { l.text(w, a.now()) })
	})
	f.flags(c)
	c.Flags().IntVar(&limit, "limit", 20, fmt.Sprintf("how many dead letters, at most %d", maxListed))
	return c
}

// identify reads the chats and turns of dead letters from their contents, if they are readable.
func (s *server) identify(ctx context.Context, found []deadLetter) error {
	stream, err := s.deadStream(ctx)
	if err != nil {
		return err
	}
	for i := range found {
		l := &found[i]
		if l.NotKept != "" || l.Reason == "undecodable" || l.Reason == "missing_field" {
			continue // the bytes name no turn
		}
		_, _, data, err := s.open(ctx, stream, l.Seq)
		switch {
		case errors.Is(err, errNoDeadLetter): // it was deleted meanwhile
		case err != nil:
			return err
		default:
			if data, err = s.content(ctx, l, data); err != nil {
				continue // dead show reports it
			}
			l.identify(data)
		}
	}
	return nil
}

// identify reads the chat and the turn or message that the bytes of a dead letter name.
func (l *deadLetter) identify(data []byte) {
	turn, ok := turnOf(data)
	if !ok {
		return
	}
	l.Chat, l.Run, l.Turn = turn.Chat, turn.Run, turn.Turn
	if events.IsMessageKind(l.Kind) {
		l.Turn, l.Message = "", turn.Turn
	}
}

// turnOf returns the turn that the body of an inbound message names, for what an agent or a user has written the id of the message.
func turnOf(data []byte) (events.TurnID, bool) {
	m, err := events.Parse(data)
	if err != nil {
		return events.TurnID{}, false
	}
	if c, err := m.Cancel(); err == nil {
		return c.TurnID, true
	}
	if r, err := m.Resume(); err == nil {
		return r.TurnID, true
	}
	if events.IsMessageKind(m.Kind) {
		a, err := m.AgentMessage()
		if err != nil {
			return events.TurnID{}, false
		}
		return events.TurnID{App: a.App, Chat: a.Chat, Run: a.Run, Turn: a.ID}, true
	}
	t, err := events.DecodeTurn(data)
	if err != nil {
		return events.TurnID{}, false
	}
	return t.TurnID, true
}

// deadListing is the outcome of turnctl dead ls.
type deadListing struct {
	Letters []deadLetter `json:"letters"` // the newest first
	More    bool         `json:"more"`    // there are older ones
}

func (l *deadListing) text(w io.Writer, now time.Time) {
	if len(l.Letters) == 0 {
		fmt.Fprintln(w, "no dead letters")
		return
	}
	rows := [][]string{{"seq", "age", "reason", "kind", "app", "chat", "id", "source", "size"}}
	for i := range l.Letters {
		d := &l.Letters[i]
		rows = append(rows, []string{
			strconv.FormatUint(d.Seq, 10), age(now.Sub(d.Time)), id(d.Reason), id(d.Kind), id(d.App), id(d.Chat), id(cmp.Or(d.Turn, d.Message)), strconv.FormatUint(d.Source, 10), bytesText(uint64(d.Bytes)),
		})
	}
	table(w, 0, rows, 0, 4, 5, 6)
	if l.More {
		fmt.Fprintln(w, "there are older ones: a larger --limit shows them")
	}
}

// age prints a duration in its largest unit.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d/day))
	}
}
