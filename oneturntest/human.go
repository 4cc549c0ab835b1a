// human.go has a scripted person for tests with a server. One goroutine reads open questions
// (poll), and each question that a rule matches gets another one that does the acts of the rule.

package oneturntest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// HumanOptions of a [Human]. The zero value reads all questions of the default tenant and answers
// none.
type HumanOptions struct {
	Prefix string // of all names on NATS, defaults to "oneturn"
	App    string // tenant, defaults to "default"
	Chat   string // whose questions are read; empty: all chats
	User   string // that answers, defaults to the user of the question
	Rules  []Rule // the first that matches a question is used; without one it is not answered
}

// Rule defines what a [Human] does about a question. Empty fields match every question.
type Rule struct {
	Tool      string // UI tool: tool_name of the question
	Component string // component_type of the question
	Ask       string // name or number of the question in its call
	// Acts are done in order, each after the result of the previous one. Without acts the question
	// is not answered; a wrong answer and then a right one are two acts, as is the same answer twice.
	Acts []Act
}

// Act is one thing that a [Human] does about a question.
type Act struct {
	Value  any                       // the answer: anything that encoding/json writes
	From   func(q api.Question) any  // computes the answer from the question, instead of Value
	User   string                    // that does it, instead of the human
	After  int                       // number of questions that the human must have read before it
	When   func(ctx context.Context) // returns when it is time; nil: immediately
	Cancel bool                      // cancels the turn instead of an answer
}

// SentAnswer is an act that was done, and its result.
type SentAnswer struct {
	Question api.Question
	Act      Act
	Result   events.AnswerResult // of an answer
	Err      error               // it could not be done: the test ended before, or the act is invalid
}

// Human is a scripted person: it reads the questions that tools ask and answers them by rules,
// over NATS, as a frontend does. It reads the open questions from the request API of the workers
// when it sees an event of a question, at the start, after a reconnect and every second. An act
// without a result, because a worker or the server is away, is repeated.
type Human struct {
	o      HumanOptions
	nc     *nats.Conn
	client *oneturn.Client
	space  subjects.Space
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something was read or done
	read    []api.Question
	seen    map[string]bool
	answers []SentAnswer
}

// Intervals of a human. Tests should not depend on them.
const (
	humanPolls   = time.Second
	humanRetries = 200 * time.Millisecond // before an act is repeated
)

// StartHuman starts a person, until ctx ends or Stop is called.
func StartHuman(ctx context.Context, nc *nats.Conn, o HumanOptions) (*Human, error) {
	if o.Prefix == "" {
		o.Prefix = subjects.DefaultPrefix
	}
	if o.App == "" {
		o.App = events.DefaultApp
	}
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{Prefix: o.Prefix})
	if err != nil {
		return nil, fmt.Errorf("oneturntest: %w", err)
	}
	space, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, fmt.Errorf("oneturntest: %w", err)
	}
	h := &Human{o: o, nc: nc, client: client, space: space, changed: make(chan struct{}), seen: map[string]bool{}}
	news := make(chan struct{}, 1)
	chat := "*"
	if o.Chat != "" {
		chat = subjects.Token(o.Chat)
	}
	asks := subjects.Key{App: subjects.Token(o.App), Chat: chat, Turn: "*", Call: "*"}
	sub, err := nc.Subscribe(space.EventOfTurn(asks, events.RecordAsk)+".*", func(*nats.Msg) {
		select {
		case news <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return nil, fmt.Errorf("oneturntest: subscribe to questions: %w", err)
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.done.Go(func() {
		defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
		h.run(ctx, news)
	})
	return h, nil
}

// Stop ends the human and its acts, and waits for their end.
func (h *Human) Stop() {
	h.cancel()
	h.done.Wait()
}

// run polls when something happened, and regularly.
func (h *Human) run(ctx context.Context, news <-chan struct{}) {
	connected := h.nc.StatusChanged(nats.CONNECTED)
	defer h.nc.RemoveStatusListener(connected)
	tick := time.NewTicker(humanPolls)
	defer tick.Stop()
	for {
		h.poll(ctx)
		select {
		case <-news:
		case <-connected:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// poll reads all open questions.
func (h *Human) poll(ctx context.Context) {
	for from := uint64(0); ; {
		page, err := h.client.Questions(ctx, oneturn.QuestionFilter{App: h.o.App, Chat: h.o.Chat, From: from})
		if err != nil {
			return // no worker answers: the next poll reads again
		}
		for _, q := range page.Questions {
			if whole, err := h.whole(ctx, q); err == nil {
				h.meet(ctx, whole)
			}
		}
		if from = page.Next; from == 0 {
			return
		}
	}
}

// whole reads a question with its payload, which a list of all chats omits.
func (h *Human) whole(ctx context.Context, q api.Question) (api.Question, error) {
	if h.o.Chat != "" || h.met(&q) {
		return q, nil
	}
	found, err := h.client.Question(ctx, oneturn.QuestionID{App: h.o.App, Chat: q.Chat, Run: q.Run, ToolCallID: q.ToolCallID})
	if err != nil {
		return q, err
	}
	return *found, nil
}

// met reports whether a question was read before.
func (h *Human) met(q *api.Question) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[questionOf(q)]
}

func questionOf(q *api.Question) string { return q.Chat + "\x00" + q.ToolCallID }

// meet starts the acts of the first rule that matches a question, once.
func (h *Human) meet(ctx context.Context, q api.Question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := questionOf(&q)
	if h.seen[id] {
		return
	}
	h.seen[id] = true
	h.read = append(h.read, q)
	h.notify()
	if i := slices.IndexFunc(h.o.Rules, func(r Rule) bool { return r.matches(&q) }); i >= 0 {
		h.done.Go(func() { h.act(ctx, q, h.o.Rules[i].Acts) })
	}
}

// notify wakes all goroutines in await. The caller holds the lock.
func (h *Human) notify() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (r *Rule) matches(q *api.Question) bool {
	_, ask, _ := events.ParseQuestionID(q.ToolCallID)
	return (r.Tool == "" || r.Tool == q.Tool) && (r.Component == "" || r.Component == q.Component) && (r.Ask == "" || r.Ask == ask)
}

// act does the acts of a rule.
func (h *Human) act(ctx context.Context, q api.Question, acts []Act) {
	for _, a := range acts {
		s := SentAnswer{Question: q, Act: a}
		if s.Err = h.await(ctx, func() bool { return len(h.read) >= a.After }); s.Err == nil && a.When != nil {
			a.When(ctx)
		}
		if s.Err == nil {
			s.Result, s.Err = h.answer(ctx, &q, &a)
		}
		h.mu.Lock()
		h.answers = append(h.answers, s)
		h.notify()
		h.mu.Unlock()
		if s.Err != nil {
			return
		}
	}
}

// answer does one act, until it has a result.
func (h *Human) answer(ctx context.Context, q *api.Question, a *Act) (events.AnswerResult, error) {
	user := a.User
	for _, other := range []string{h.o.User, q.User} {
		if user == "" {
			user = other
		}
	}
	value := a.Value
	if a.From != nil {
		value = a.From(*q)
	}
	for {
		v, err := h.once(ctx, q, user, value, a.Cancel)
		if err == nil || isPermanent(err) || ctx.Err() != nil {
			return v, err
		}
		select {
		case <-time.After(humanRetries):
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// isPermanent reports whether an error is one of the act, not of the server or the workers.
func isPermanent(err error) bool {
	var wrong *events.Error
	var noType *json.UnsupportedTypeError
	var noValue *json.UnsupportedValueError
	var noForm *json.MarshalerError
	return errors.As(err, &wrong) || errors.As(err, &noType) || errors.As(err, &noValue) || errors.As(err, &noForm)
}

func (h *Human) once(ctx context.Context, q *api.Question, user string, value any, cancel bool) (result events.AnswerResult, err error) {
	if !cancel {
		r, err := h.client.Answer(ctx, &oneturn.Answer{
			QuestionID: oneturn.QuestionID{App: q.App, Chat: q.Chat, Run: q.Run, ToolCallID: q.ToolCallID},
			UserID:     user, Value: value, Workflow: q.Workflow, Subject: q.Subject,
		})
		if err != nil {
			return result, err
		}
		return *r, nil
	}
	in, _ := h.space.ParseIn(q.Subject) // a question names the pool of its turn
	client, err := oneturn.NewClient(h.nc, oneturn.ClientOptions{Prefix: h.o.Prefix, Pool: in.Pool})
	if err != nil {
		return result, err
	}
	_, err = client.Cancel(ctx, &oneturn.Cancel{
		TurnID: oneturn.TurnID{App: q.App, Chat: q.Chat, Run: q.Run, Turn: q.Turn}, ToolCallID: q.ToolCallID, Workflow: q.Workflow, UserID: user, Reason: "cancelled by the human of a test",
	})
	return result, err
}

// Questions returns the questions read so far, in that order.
func (h *Human) Questions() []api.Question {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.read)
}

// Answers returns the acts done so far, in the order of their results.
func (h *Human) Answers() []SentAnswer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.answers)
}

// AwaitQuestions waits until n questions were read, and returns them.
func (h *Human) AwaitQuestions(ctx context.Context, n int) ([]api.Question, error) {
	err := h.await(ctx, func() bool { return len(h.read) >= n })
	return h.Questions(), err
}

// AwaitAnswers waits until n acts were done, and returns them.
func (h *Human) AwaitAnswers(ctx context.Context, n int) ([]SentAnswer, error) {
	err := h.await(ctx, func() bool { return len(h.answers) >= n })
	return h.Answers(), err
}

// await waits until a condition is true, which is evaluated under the lock.
func (h *Human) await(ctx context.Context, condition func() bool) error {
	for {
		h.mu.Lock()
		changed, now := h.changed, condition()
		h.mu.Unlock()
		if now {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
