package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// endWait bounds the wait for a worker to do what was asked, and endLook is how often it is looked
// for.
const (
	endWait = 10 * time.Second
	endLook = 100 * time.Millisecond
)

func (a *app) waitsExpire() *cobra.Command {
	var cfg config.Turnctl
	var where place
	c := a.command(&cobra.Command{
		Use:   "expire TOOL_CALL_ID",
		Short: "End the time to answer a question now",
		Long: `Expire ends the time to answer a question as if it were over: its tool is told so, and goes on or
ends the turn as expired. A question that is answered already stays so. It waits up to 10 s for a
worker to do it.

Exit code: 0 the question is expired, 1 it is not: it was decided otherwise, or no worker has done
it yet.`,
		Example: `  turnctl waits expire turn-7/1 --chat chat-42`,
		Args:    oneQuestion("expire"),
	}, &cfg, func(ctx context.Context, args []string) error {
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, q, err := s.asked(ctx, where, args[0], false)
		if err != nil {
			return err
		}
		out := &endedWait{ToolCallID: q.ToolCallID, Chat: q.Chat, App: q.App, Turn: q.Turn, State: q.State, Key: q.Key}
		if q.State == askOpen {
			if out.Seq, err = s.expire(ctx, q); err != nil {
				return err
			}
			err = s.until(ctx, l.journalKey, func(l *life) bool {
				q := l.Questions.find(q.id)
				if q != nil {
					out.State = q.State
				}
				return q == nil || q.State != askOpen
			})
			if err != nil {
				return err
			}
		}
		out.Done = out.State == string(idempotency.Expired)
		return a.endedWait(cfg.Format, out)
	})
	where.flags(c)
	return c
}

func (a *app) waitsCancel() *cobra.Command {
	var cfg config.Turnctl
	var where place
	var reason string
	c := a.command(&cobra.Command{
		Use:   "cancel TOOL_CALL_ID|TURN",
		Short: "Cancel the turn that waits for an answer",
		Long: `Cancel ends the turn that has asked: its open questions close, its tool is handed nothing, and its
response says cancelled. It takes the id of a question, or the key of a turn that has asked any.
It waits up to 10 s for the turn to end.

Exit code: 0 the turn has ended as cancelled, 1 it has not: it ended otherwise, or no worker has
done it yet.`,
		Example: `  turnctl waits cancel turn-7/1 --chat chat-42
  turnctl waits cancel turn-7 --reason 'the order was withdrawn'`,
		Args: oneQuestion("cancel"),
	}, &cfg, func(ctx context.Context, args []string) error {
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, err := s.turnThatAsked(ctx, where, args[0])
		if err != nil {
			return err
		}
		out := &endedWait{ToolCallID: args[0], Chat: l.Chat, App: l.App, Turn: l.Turn, Key: l.Key, turn: true}
		see := func(l *life) bool {
			out.State = l.State
			if l.Response != nil {
				out.State = cmp.Or(string(l.Response.Code), l.Response.Status)
			}
			return l.State == stateEnded
		}
		if !see(l) {
			if out.Seq, err = s.cancel(ctx, l, reason); err != nil {
				return err
			}
			if err := s.until(ctx, l.journalKey, see); err != nil {
				return err
			}
		}
		out.Done = out.State == string(events.CodeCancelled)
		return a.endedWait(cfg.Format, out)
	})
	where.flags(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for people")
	return c
}

// endedWait is the outcome of expire and cancel.
type endedWait struct {
	ToolCallID string `json:"tool_call_id"` // as it was typed
	App        string `json:"app_id"`
	Chat       string `json:"chat_id"`
	Turn       string `json:"turn"`
	Key        string `json:"key"`
	Seq        uint64 `json:"message_seq,omitempty"` // of what was published, 0 if there was no need
	State      string `json:"state"`                 // of the question; cancel: of the turn, or the code of its response, ok if it has none
	Done       bool   `json:"done"`

	turn bool // the state is the turn's
}

func (a *app) endedWait(format string, e *endedWait) error {
	if err := a.print(format, e, e.text); err != nil {
		return err
	}
	if !e.Done {
		return cli.ErrTold
	}
	return nil
}

func (e *endedWait) text(w io.Writer) {
	what := "question " + clean(e.ToolCallID, maxCallID)
	if e.turn {
		what = "turn " + id(e.Turn)
	}
	switch {
	case e.Done:
		fmt.Fprintf(w, "%s of chat %s is %s\n", what, id(e.Chat), id(e.State))
	case e.Seq == 0:
		fmt.Fprintf(w, "%s of chat %s is %s already, and stays so\n", what, id(e.Chat), id(e.State))
	case e.State == askOpen || e.State == stateRunning || e.State == stateParked || e.State == stateUnclaimed:
		fmt.Fprintf(w, "%s of chat %s is still %s: message %d waits for a worker\n", what, id(e.Chat), e.State, e.Seq)
	default:
		fmt.Fprintf(w, "%s of chat %s is %s: that came first\n", what, id(e.Chat), id(e.State))
	}
}

// turnThatAsked finds a turn by a question, or by its key or call id.
func (s *server) turnThatAsked(ctx context.Context, where place, name string) (*life, error) {
	l, _, err := s.asked(ctx, where, name, false)
	if err == nil || !errors.Is(err, errNoQuestion) && !errors.Is(err, errNoQuestionID) {
		return l, err
	}
	names, err := s.names(ctx, where, name, idempotency.AnyToken)
	if err != nil {
		return nil, err
	}
	turns := map[subjects.Key]bool{}
	for _, r := range names {
		turns[r.Key] = true
	}
	switch len(turns) {
	case 0:
		return nil, fmt.Errorf("no turn %.200q has asked anything%s: turnctl waits ls lists open questions, publisher cancel ends any turn", name, where.hint())
	case 1:
		return s.life(ctx, names[0].Key, false)
	default:
		return nil, severalTurns(name, names)
	}
}

// expire publishes that the time of a question is over, because an operator says so.
func (s *server) expire(ctx context.Context, q *question) (uint64, error) {
	e := &events.Expire{
		TurnID: events.TurnID{App: q.App, Chat: q.Chat, Run: q.Run, Turn: q.Turn}, Workflow: q.Workflow, Pool: s.pool(q.Subject),
		Key: q.Key, Ask: q.ask, ToolCallID: q.ToolCallID, Forced: true,
	}
	body, err := events.EncodeExpire(e, time.Now())
	if err != nil {
		return 0, fmt.Errorf("expire %.200q: %w", q.ToolCallID, err)
	}
	return s.send(ctx, s.space.In(e.Pool, events.KindExpire, q.App, q.Workflow, q.Chat), body)
}

// cancel publishes the wish that a turn end, to the pool that its questions name.
func (s *server) cancel(ctx context.Context, l *life, reason string) (uint64, error) {
	pool := subjects.DefaultPool
	if len(l.Questions) > 0 {
		pool = s.pool(l.Questions[0].Subject)
	}
	c := &events.Cancel{TurnID: events.TurnID{App: l.App, Chat: l.Chat, Run: l.Run, Turn: l.Turn}, Workflow: l.Workflow, Reason: reason}
	if l.journalKey != subjects.TurnKey(l.App, l.Chat, l.Run, l.Turn) { // its key was used before, or its claim cannot be read
		c.ToolCallID = l.ToolCallID
		for _, q := range l.Questions {
			c.ToolCallID, c.Workflow = cmp.Or(c.ToolCallID, q.ToolCallID), cmp.Or(c.Workflow, q.Workflow)
		}
		if c.ToolCallID == "" {
			return 0, fmt.Errorf("cancel %.200q: its claim cannot be read, and it has asked no question that can be: end it with turnctl repair", l.Turn)
		}
	}
	body, err := events.EncodeCancel(c, time.Now())
	if err != nil {
		return 0, fmt.Errorf("cancel %.200q: %w", l.Turn, err)
	}
	return s.send(ctx, s.space.In(pool, events.KindCancel, l.App, l.Workflow, l.Chat), body)
}

func (s *server) send(ctx context.Context, subject string, body []byte) (uint64, error) {
	ack, err := s.js.Publish(ctx, subject, body, jetstream.WithExpectStream(s.space.InStream()))
	if err != nil {
		return 0, fmt.Errorf("publish to %s: %w", subject, unprovisioned(err))
	}
	return ack.Sequence, nil
}

// until looks at a turn again and again until done reports true, for endWait at most.
func (s *server) until(ctx context.Context, key subjects.Key, done func(*life) bool) error {
	over := time.After(endWait)
	look := time.NewTicker(endLook)
	defer look.Stop()
	for {
		l, err := s.life(ctx, key, false)
		if err != nil {
			return err
		}
		if done(l) {
			return nil
		}
		select {
		case <-look.C:
		case <-over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for a worker: %w", context.Cause(ctx))
		}
	}
}
