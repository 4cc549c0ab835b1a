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

// HumanOptions of a [Human]. The zero value is somebody who reads all questions of the default
// tenant and says nothing.
type HumanOptions struct {
	Prefix string // of all names on NATS, defaults to "oneturn"
	App    string // tenant, defaults to "default"
	Chat   string // whose questions are read, those of all chats if empty
	User   string // who answers, defaults to the user that a question is for
	Rules  []Rule // the first that fits a question counts; without one there is silence
}

// Rule says what a [Human] does about a question. Empty fields fit every question.
type Rule struct {
	Tool      string // UI tool: tool_name of the question
	Component string // component_type of the question
	Ask       string // name or number of the question in its call
	// Acts are done one after the other, each after the verdict on the one before. None is
	// silence; a wrong answer and then a right one are two; so is the same answer twice.
	Acts []Act
}

// Act is one thing that a [Human] does about a question.
type Act struct {
	Value  any                       // the answer: anything that encoding/json writes
	From   func(q api.Question) any  // makes the answer of the question, instead of Value
	User   string                    // who says it, instead of the human
	After  int                       // how many questions the human has to have read before it
	When   func(ctx context.Context) // returns when it is time, nil: at once
	Cancel bool                      // cancels the turn instead of an answer
}

// Said is an act that was done, and what became of it.
type Said struct {
	Question api.Question
	Act      Act
	Verdict  events.AnswerResult // of an answer
	Err      error               // it could not be done: the test has ended before, or the act is wrong
}

// Human is a scripted person: it reads the questions that tools ask and answers them by rules,
// over NATS, as a frontend does. It subscribes to what happens, which only tells it to read; it
// reads the open questions from the workers' request API, also at the start, after a reconnect
// and every second, and knows those that it has read. What is not decided on, because a worker
// or the server is away, it says again.
type Human struct {
	o      HumanOptions
	nc     *nats.Conn
	client *oneturn.Client
	space  subjects.Space
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and made anew whenever something was read or done
	read    []api.Question
	known   map[string]bool
	said    []Said
}

// Times of a human. Nothing in a test should depend on them.
const (
	humanLooks = time.Second
	humanWaits = 200 * time.Millisecond // before something is said again
)

// StartHuman begins to read, until ctx ends or Stop is called.
func StartHuman(ctx context.Context, nc *nats.Conn, o HumanOptions) (*Human, error) {
	if o.Prefix == "" {
		o.Prefix = subjects.DefaultPrefix
	}
	if o.App == "" {
		o.App = events.DefaultApp
	}
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{Prefix: o.Prefix})
	if err != nil {
		return nil, fmt.Errorf("turntest: %w", err)
	}
	space, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, fmt.Errorf("turntest: %w", err)
	}
	h := &Human{o: o, nc: nc, client: client, space: space, changed: make(chan struct{}), known: map[string]bool{}}
	look := make(chan struct{}, 1)
	chat := "*"
	if o.Chat != "" {
		chat = subjects.Token(o.Chat)
	}
	asks := subjects.Key{App: subjects.Token(o.App), Chat: chat, Turn: "*", Call: "*"}
	sub, err := nc.Subscribe(space.EventOfTurn(asks, events.RecordAsk)+".*", func(*nats.Msg) {
		select {
		case look <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return nil, fmt.Errorf("turntest: subscribe to questions: %w", err)
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.done.Go(func() {
		defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
		h.run(ctx, look)
	})
	return h, nil
}

// Stop ends the human, and what it is about to say. It waits for that.
func (h *Human) Stop() {
	h.cancel()
	h.done.Wait()
}

// run reads whenever there is a reason.
func (h *Human) run(ctx context.Context, look <-chan struct{}) {
	connected := h.nc.StatusChanged(nats.CONNECTED)
	defer h.nc.RemoveStatusListener(connected)
	tick := time.NewTicker(humanLooks)
	defer tick.Stop()
	for {
		h.look(ctx)
		select {
		case <-look:
		case <-connected:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reads all open questions.
func (h *Human) look(ctx context.Context) {
	for from := uint64(0); ; {
		page, err := h.client.Questions(ctx, h.o.App, api.QuestionsRequest{Chat: h.o.Chat, From: from})
		if err != nil {
			return // no worker answers: it is read again
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

// whole reads a question with what it shows, which a list of all chats leaves out.
func (h *Human) whole(ctx context.Context, q api.Question) (api.Question, error) {
	if h.o.Chat != "" || h.met(&q) {
		return q, nil
	}
	page, err := h.client.Questions(ctx, h.o.App, api.QuestionsRequest{Chat: q.Chat, ToolCallID: q.ToolCallID})
	if err != nil || len(page.Questions) == 0 {
		return q, err
	}
	return page.Questions[0], nil
}

// met reports whether a question was read before.
func (h *Human) met(q *api.Question) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[questionOf(q)]
}

func questionOf(q *api.Question) string { return q.Chat + "\x00" + q.ToolCallID }

// meet begins to do what the rules say about a question, once.
func (h *Human) meet(ctx context.Context, q api.Question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := questionOf(&q)
	if h.known[id] {
		return
	}
	h.known[id] = true
	h.read = append(h.read, q)
	h.wake()
	if i := slices.IndexFunc(h.o.Rules, func(r Rule) bool { return r.fits(&q) }); i >= 0 {
		h.done.Go(func() { h.act(ctx, q, h.o.Rules[i].Acts) })
	}
}

// wake tells those who wait that something has changed. The caller holds the lock.
func (h *Human) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (r *Rule) fits(q *api.Question) bool {
	_, ask, _ := events.ParseQuestionID(q.ToolCallID)
	return (r.Tool == "" || r.Tool == q.Tool) && (r.Component == "" || r.Component == q.Component) && (r.Ask == "" || r.Ask == ask)
}

// act does what a rule says.
func (h *Human) act(ctx context.Context, q api.Question, acts []Act) {
	for _, a := range acts {
		s := Said{Question: q, Act: a}
		if s.Err = h.await(ctx, func() bool { return len(h.read) >= a.After }); s.Err == nil && a.When != nil {
			a.When(ctx)
		}
		if s.Err == nil {
			s.Verdict, s.Err = h.say(ctx, &q, &a)
		}
		h.mu.Lock()
		h.said = append(h.said, s)
		h.wake()
		h.mu.Unlock()
		if s.Err != nil {
			return
		}
	}
}

// say does one act, until somebody has decided on it.
func (h *Human) say(ctx context.Context, q *api.Question, a *Act) (events.AnswerResult, error) {
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
		if err == nil || hopeless(err) || ctx.Err() != nil {
			return v, err
		}
		select {
		case <-time.After(humanWaits):
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// hopeless reports whether an error is one of the act, not of the server or the workers.
func hopeless(err error) bool {
	var wrong *events.Error
	var noType *json.UnsupportedTypeError
	var noValue *json.UnsupportedValueError
	var noForm *json.MarshalerError
	return errors.As(err, &wrong) || errors.As(err, &noType) || errors.As(err, &noValue) || errors.As(err, &noForm)
}

func (h *Human) once(ctx context.Context, q *api.Question, user string, value any, cancel bool) (events.AnswerResult, error) {
	if !cancel {
		return h.client.Answer(ctx, oneturn.Answer{
			App: q.App, Chat: q.Chat, Run: q.Run, ToolCallID: q.ToolCallID, UserID: user, Value: value, Workflow: q.Workflow, Subject: q.Subject,
		})
	}
	in, _ := h.space.ParseIn(q.Subject) // a question names the pool of its turn
	client, err := oneturn.NewClient(h.nc, oneturn.ClientOptions{Prefix: h.o.Prefix, Pool: in.Pool})
	if err != nil {
		return events.AnswerResult{}, err
	}
	_, err = client.Cancel(ctx, oneturn.Cancel{
		TurnID: oneturn.TurnID{App: q.App, Chat: q.Chat, Run: q.Run, Turn: q.Turn}, ToolCallID: q.ToolCallID, Workflow: q.Workflow, UserID: user, Reason: "a test's human cancels",
	})
	return events.AnswerResult{}, err
}

// Questions returns what was read so far, in that order.
func (h *Human) Questions() []api.Question {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.read)
}

// Said returns what was done so far, in the order in which it was decided on.
func (h *Human) Said() []Said {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said)
}

// AwaitQuestions waits until n questions were read, and returns them.
func (h *Human) AwaitQuestions(ctx context.Context, n int) ([]api.Question, error) {
	err := h.await(ctx, func() bool { return len(h.read) >= n })
	return h.Questions(), err
}

// AwaitSaid waits until n acts were done, and returns them.
func (h *Human) AwaitSaid(ctx context.Context, n int) ([]Said, error) {
	err := h.await(ctx, func() bool { return len(h.said) >= n })
	return h.Said(), err
}

// await waits until something is so, which is looked at under the lock.
func (h *Human) await(ctx context.Context, so func() bool) error {
	for {
		h.mu.Lock()
		changed, now := h.changed, so()
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
