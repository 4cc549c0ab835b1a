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

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/config"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// Both commands publish a message, an expiry or a cancel request, and let a worker decide it by the rules of the
// journal: they never write to the journal. Then they read the turn until it shows the outcome (until), and print
// it. The exit code is 0 only if the requested end has happened.

// endTimeout bounds the wait for a worker to end a question, and endPoll is how often its turn is read.
const (
	endTimeout = 10 * time.Second
	endPoll    = 100 * time.Millisecond
)

func (a *app) questionsExpire() *cobra.Command {
	var cfg config.Turnctl
	var where place
	c := a.command(&cobra.Command{
		Use:   "expire [CHAT] TOOL_CALL_ID",
		Short: "End the time to answer a question now",
		Long: `Expire ends the answer time of a question now. The tool receives expired and continues or fails. A
question that is already answered does not change. The command waits up to 10 s for a worker to
record it.

Exit code: 0 the question is expired, 1 it is not: it was answered or cancelled first, or no worker
has recorded it yet.`,
		Example: `  turnctl questions expire chat-42 turn-7/1`,
	}, &cfg, func(ctx context.Context, args []string) error {
		toolCallID, err := where.question("expire", args)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, q, err := s.question(ctx, where, toolCallID, false)
		if err != nil {
			return err
		}
		out := &endedQuestion{ToolCallID: q.ToolCallID, Chat: q.Chat, App: q.App, Turn: q.Turn, State: string(q.State), Key: q.Key}
		if q.State == api.Open {
			if out.Seq, err = s.expire(ctx, q); err != nil {
				return err
			}
			err = s.until(ctx, l.journalKey, func(l *turnReport) bool {
				q := l.Questions.find(q.Key, q.id)
				if q != nil {
					out.State = string(q.State)
				}
				return q == nil || q.State != api.Open
			})
			if err != nil {
				return err
			}
		}
		out.Done = out.State == string(idempotency.Expired)
		return a.printOutcome(out.Done, cfg.Format, out, out.text)
	})
	where.flags(c)
	return c
}

func (a *app) questionsCancel() *cobra.Command {
	var cfg config.Turnctl
	var where place
	var reason string
	c := a.command(&cobra.Command{
		Use:   "cancel [CHAT] TOOL_CALL_ID|TURN",
		Short: "Cancel the turn that waits for an answer",
		Long: `Cancel ends the turn of a question: its open questions close, and the response has code cancelled. The
argument is the id of a question, or the key of a turn that asked one. The command waits up to 10 s
for the turn to end.

Exit code: 0 the turn ended as cancelled, 1 it did not: it ended otherwise, or no worker has ended it
yet.`,
		Example: `  turnctl questions cancel chat-42 turn-7/1
  turnctl questions cancel turn-7 --reason 'the order was withdrawn'`,
	}, &cfg, func(ctx context.Context, args []string) error {
		toolCallID, err := where.question("cancel", args)
		if err != nil {
			return err
		}
		s, err := a.connect(&cfg)
		if err != nil {
			return err
		}
		defer s.close()
		l, err := s.turnOfQuestion(ctx, where, toolCallID)
		if err != nil {
			return err
		}
		out := &endedQuestion{ToolCallID: toolCallID, Chat: l.Chat, App: l.App, Turn: l.Turn, Key: l.Key, turn: true}
		ended := func(l *turnReport) bool {
			out.State = string(l.State)
			if l.Response != nil {
				out.State = cmp.Or(string(l.Response.Code), l.Response.Status)
			}
			return l.State == query.Ended
		}
		if !ended(l) {
			if out.Seq, err = s.cancel(ctx, l, reason); err != nil {
				return err
			}
			if err := s.until(ctx, l.journalKey, ended); err != nil {
				return err
			}
		}
		out.Done = out.State == string(events.CodeCancelled)
		return a.printOutcome(out.Done, cfg.Format, out, out.text)
	})
	where.flags(c)
	c.Flags().StringVar(&reason, "reason", "", "the reason, for people")
	return c
}

// endedQuestion is the output of expire and cancel.
type endedQuestion struct {
	ToolCallID string `json:"tool_call_id"` // as it was typed
	App        string `json:"app_id"`
	Chat       string `json:"chat_id"`
	Turn       string `json:"turn"`
	Key        string `json:"key"`
	Seq        uint64 `json:"message_seq,omitempty"` // of the published message, 0 if none was needed
	State      string `json:"state"`                 // of the question; cancel: of the turn, or the code of its response, ok if it has none
	Done       bool   `json:"done"`

	turn bool // the state is the turn's
}

func (e *endedQuestion) text(w io.Writer) {
	what := "question " + clean(e.ToolCallID, maxCallID)
	if e.turn {
		what = "turn " + id(e.Turn)
	}
	switch {
	case e.Done:
		fmt.Fprintf(w, "%s of chat %s is %s\n", what, id(e.Chat), id(e.State))
	case e.Seq == 0:
		fmt.Fprintf(w, "%s of chat %s is already %s\n", what, id(e.Chat), id(e.State))
	case slices.Contains([]string{string(api.Open), string(query.Running), string(query.Parked), string(query.Unclaimed)}, e.State):
		fmt.Fprintf(w, "%s of chat %s is still %s: no worker has handled message %d yet\n", what, id(e.Chat), e.State, e.Seq)
	default:
		fmt.Fprintf(w, "%s of chat %s became %s first\n", what, id(e.Chat), id(e.State))
	}
}

// turnOfQuestion finds the turn that has a question by the id of the question, or by its own key or call id.
func (s *server) turnOfQuestion(ctx context.Context, where place, name string) (*turnReport, error) {
	l, _, err := s.question(ctx, where, name, false)
	if err == nil || !errors.Is(err, errNoQuestion) && !errors.Is(err, errNoQuestionID) {
		return l, err
	}
	names, err := s.names(ctx, where, name, idempotency.AnyToken)
	if err != nil {
		return nil, err
	}
	turns := map[subjects.Key]bool{}
	for _, r := range names {
		turns[r.OfTurn()] = true
	}
	switch len(turns) {
	case 0:
		return nil, fmt.Errorf("no turn %.200q with a question found%s: turnctl questions ls lists open questions, publisher cancel ends any turn", name, where.hint())
	case 1:
		return s.turnReport(ctx, names[0].Key, false)
	default:
		return nil, severalTurns(name, names)
	}
}

// expire publishes that the answer time of a question ends now, forced by an operator.
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

// cancel publishes a cancel request for a turn, to the pool that its questions name.
func (s *server) cancel(ctx context.Context, l *turnReport, reason string) (uint64, error) {
	pool := subjects.DefaultPool
	if len(l.Questions) > 0 {
		pool = s.pool(l.Questions[0].Subject)
	}
	c := &events.Cancel{TurnID: events.TurnID{App: l.App, Chat: l.Chat, Run: l.Run, Turn: l.Turn}, Workflow: l.Workflow, Reason: reason}
	if l.journalKey != subjects.TurnKey(l.App, l.Chat, l.Run, l.Turn) { // its key was reused, or its claim is unreadable
		c.ToolCallID = l.ToolCallID
		for _, q := range l.Questions {
			c.ToolCallID, c.Workflow = cmp.Or(c.ToolCallID, q.ToolCallID), cmp.Or(c.Workflow, q.Workflow)
		}
		if c.ToolCallID == "" {
			return 0, fmt.Errorf("cancel %.200q: its claim and its questions are unreadable: end it with turnctl repair", l.Turn)
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

// until reads a turn repeatedly until done reports true, for endTimeout at most.
func (s *server) until(ctx context.Context, key subjects.Key, done func(*turnReport) bool) error {
	over := time.After(endTimeout)
	poll := time.NewTicker(endPoll)
	defer poll.Stop()
	for {
		l, err := s.turnReport(ctx, key, false)
		if err != nil {
			return err
		}
		if done(l) {
			return nil
		}
		select {
		case <-poll.C:
		case <-over:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for a worker: %w", context.Cause(ctx))
		}
	}
}
