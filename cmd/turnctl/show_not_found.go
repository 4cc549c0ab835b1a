package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/subjects"
)

var errNoRecord = errors.New("no record of the turn")

// missing is the error for a turn without records, with what to check. turn is empty if a key was typed.
func (s *server) missing(ctx context.Context, key subjects.Key, turn events.TurnID) error {
	what := "turn " + key.String()
	if turn.Turn != "" {
		what = fmt.Sprintf("turn %s of chat %s, app %s", id(turn.Turn), id(turn.Chat), id(turn.App))
		if turn.Run != "" {
			what += ", run " + id(turn.Run)
		}
	}
	causes := []string{s.elsewhere(ctx, turn)}
	if held, empty := s.holds(ctx, s.space.InStream()); !empty {
		causes = append(causes, fmt.Sprintf("it may wait in %s%s for a worker: see turnctl doctor", s.space.InStream(), held))
	}
	if held, empty := s.holds(ctx, s.space.DeadStream()); !empty {
		causes = append(causes, fmt.Sprintf("it may be a dead letter in %s%s: see turnctl dead ls", s.space.DeadStream(), held))
	}
	causes = append(causes, "its records may be older than the journal's retention")
	return fmt.Errorf("no record of %s\n  - %s", what, strings.Join(causes, "\n  - "))
}

// elsewhere searches the newest records for turns of the same chat and turn key, in another app or run.
func (s *server) elsewhere(ctx context.Context, turn events.TurnID) string {
	const spelled = "check that chat, turn, --app and --run are spelled as in the event: turnctl ls lists turns, turnctl ls --messages messages"
	const newest, most = 20_000, 3 // records read, turns listed
	if turn.Turn == "" {
		return spelled
	}
	stream, err := s.js.Stream(ctx, s.space.TurnsStream())
	if err != nil {
		return spelled
	}
	last := stream.CachedInfo().State.LastSeq
	found, err := s.window(ctx, listSettings{chat: turn.Chat, limit: maxListed}, last-min(last, newest), last, time.Time{})
	if err != nil {
		return spelled
	}
	var same []string
	for _, c := range slices.Backward(found) {
		run, name, ok := subjects.ParseTurnToken(c.Turn)
		if !ok || name != turn.Turn || len(same) == most {
			continue
		}
		flags := "--app " + argument(shown(c.App))
		if run != "" {
			flags += " --run " + argument(run)
		}
		same = append(same, flags)
	}
	if len(same) == 0 {
		return spelled
	}
	return "the same chat and turn exist with " + strings.Join(same, ", or with ")
}

// argument prints an id for a command line.
func argument(text string) string { return cli.ShellWord(id(text)) }

// holds describes how many messages a stream has, and reports whether it is empty; "" if that is unknown.
func (s *server) holds(ctx context.Context, name string) (text string, empty bool) {
	stream, err := s.js.Stream(ctx, name)
	if err != nil {
		return "", false
	}
	n := stream.CachedInfo().State.Msgs
	return " (it holds " + plural.Of(n, "message") + ")", n == 0
}
