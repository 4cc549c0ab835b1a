package oneturn

// Questions of tools to people: the client answers them (internal/deliver), lists them by the request API, and
// reports the open ones of a turn that is waited for (questionWatch).

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// QuestionID is the identity of a question.
type QuestionID struct {
	App        string // tenant, "default" if empty
	Chat       string
	Run        string // run id of its turn, if it is known: without it the chat is searched for the question
	ToolCallID string // tool_call_id of its event
}

// check reports an id that identifies no question, with the field to set.
func (id *QuestionID) check() error {
	switch {
	case id.Chat == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the question has no chat: set QuestionID.Chat"}
	case id.ToolCallID == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the question has no id: set QuestionID.ToolCallID to the tool_call_id of its event"}
	}
	return nil
}

// Answer is a person's answer to a question, for [Client.Answer].
type Answer struct {
	QuestionID
	UserID string // the user that answers; a question to a user accepts no other user's answer
	Value  any    // the answer: anything that encoding/json writes

	// Workflow of the question, and the subject that its event names, or by default the subject of the
	// client's pool. Without a workflow the question is looked up by the workers' request API.
	Workflow string
	Subject  string
}

// QuestionFilter selects open questions, for [Client.Questions].
type QuestionFilter struct {
	App  string // tenant, "default" if empty
	Chat string // all chats of the tenant if empty
	From uint64 // Next of the page before, 0 for the first page
}

// ErrNoQuestion means that neither the question exists nor a running turn that could ask it.
var ErrNoQuestion = errors.New("there is no such question, and no running turn that could ask it")

// ErrUndecided means that an answer is stored in the inbound stream, and that no worker has decided on it in
// time. A worker will; sending the answer again is harmless and returns the decision.
var ErrUndecided = deliver.ErrUndecided

// Answer publishes the answer to a question, and waits for its result: until ctx ends, or
// ClientOptions.AnswerWait is over. Not every result is an acceptance, see [events.AnswerResult.OK]. After an
// [ErrUndecided] the answer is published, and a worker will decide on it. Sending the same answer again is
// harmless: the result is the same as the first time.
//
// Without Workflow a running worker has to reply to the lookup of the question: if none does, Answer fails with
// [ErrNoWorker] and has published nothing. With Workflow no worker is needed to publish.
func (c *Client) Answer(ctx context.Context, a *Answer) (*events.AnswerResult, error) {
	fail := func(err error) (*events.AnswerResult, error) {
		return nil, fmt.Errorf("answer %.80q of chat %.80q: %w", a.ToolCallID, a.Chat, err)
	}
	if err := a.check(); err != nil {
		return fail(err)
	}
	value, err := tree(a.Value)
	if err != nil {
		return fail(fmt.Errorf("it has no JSON form: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.AnswerWait)
	defer cancel()
	app, subject, workflow, run := tenant(a.App), a.Subject, a.Workflow, a.Run
	switch {
	case subject != "" && workflow != "":
	case workflow != "":
		subject = c.space.In(c.o.Pool, events.KindToolCallResponse, app, workflow, a.Chat)
	default:
		asked, err := c.question(ctx, a.QuestionID)
		if errors.Is(err, ErrNoQuestion) {
			unknown := deliver.Unknown(a.ToolCallID)
			return &unknown, nil
		}
		if err != nil {
			return fail(err)
		}
		subject, workflow, run = asked.Subject, asked.Workflow, asked.Run
	}
	return deliver.Answer(ctx, c.js, c.space, subject, &events.ToolCallResponse{
		TurnID: events.TurnID{App: app, Chat: a.Chat, Run: run}, Workflow: workflow, ToolCallID: a.ToolCallID, UserID: a.UserID, Value: value,
	})
}

// How long, and how often at first, a question is looked for whose turn no worker has claimed yet.
const (
	unknownFor   = 3 * time.Second
	unknownPause = 100 * time.Millisecond
)

// Question looks up a question in any state: [api.NotAsked] if its turn runs and has not asked it. If there
// is no such turn either, the lookup is repeated for 3 s, because a turn that was published just now may not
// be claimed yet, and then fails with [ErrNoQuestion]. A running worker has to reply, else it fails with
// [ErrNoWorker].
func (c *Client) Question(ctx context.Context, id QuestionID) (*api.Question, error) {
	asked, err := c.question(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("question %.80q of chat %.80q: %w", id.ToolCallID, id.Chat, err)
	}
	return asked, nil
}

func (c *Client) question(ctx context.Context, id QuestionID) (*api.Question, error) {
	if err := id.check(); err != nil {
		return nil, err
	}
	end := time.Now().Add(unknownFor)
	for wait := unknownPause; ; wait *= 2 {
		page, err := c.questions(ctx, id.App, api.QuestionsRequest{Chat: id.Chat, Run: id.Run, ToolCallID: id.ToolCallID})
		if err != nil {
			return nil, err
		}
		if len(page.Questions) > 0 {
			return &page.Questions[0], nil
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, ErrNoQuestion
		}
		if err := pause.For(ctx, min(wait, left)); err != nil {
			return nil, err
		}
	}
}

// Questions lists open questions: a page of 16 at most, which may be empty though there are more, see
// [api.Questions]. A running worker has to reply, else it fails with [ErrNoWorker].
func (c *Client) Questions(ctx context.Context, f QuestionFilter) (*api.Questions, error) {
	page, err := c.questions(ctx, f.App, api.QuestionsRequest{Chat: f.Chat, From: f.From})
	if err != nil {
		return nil, fmt.Errorf("list questions: %w", err)
	}
	return page, nil
}

func (c *Client) questions(ctx context.Context, app string, r api.QuestionsRequest) (*api.Questions, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	app = tenant(app)
	page, none := request[api.Questions](ctx, c, app, api.VerbQuestions, r)
	if !errors.Is(none, ErrNoWorker) {
		return page, none
	}
	former, err := request[api.Waits](ctx, c, app, api.VerbWaits, r) // workers of the release before
	switch {
	case errors.Is(err, ErrNoWorker):
		return nil, none
	case err != nil:
		return nil, err
	}
	return &api.Questions{Questions: former.Waits, Next: former.Next}, nil
}

// questionWatch reports the open questions of a turn that is waited for. Live copies only trigger the next
// read of the journal.
type questionWatch struct {
	on      func(*api.Question) // nil: no report is wanted
	changed chan struct{}
	sub     *nats.Subscription

	order    []*api.Question // that were read
	seen     map[string]bool // their ids
	acks     map[string]bool // ids of those that are decided
	notified int             // of order
}

// watchQuestions subscribes to the questions of a turn and of its steps.
func (c *Client) watchQuestions(key subjects.Key) (*questionWatch, error) {
	q := &questionWatch{on: c.o.OnQuestion}
	if q.on == nil {
		return q, nil
	}
	q.changed, q.seen, q.acks = make(chan struct{}, 1), map[string]bool{}, map[string]bool{}
	var err error
	q.sub, err = c.nc.Subscribe(c.space.EventOfTurn(key.WithCall(idempotency.AnyToken), events.RecordAsk)+".*", func(*nats.Msg) {
		select {
		case q.changed <- struct{}{}:
		default: // one is enough
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen to questions: %w", err)
	}
	return q, nil
}

func (q *questionWatch) stop() {
	if q.sub != nil {
		_ = q.sub.Unsubscribe() // fails only on a closed connection
	}
}

// read collects the questions among records of the turn, and which are decided.
func (q *questionWatch) read(records []api.Record) {
	if q.on == nil {
		return
	}
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case events.RecordAsk:
			asked := query.ReadQuestion(&idempotency.Record{Seq: r.Sequence, Time: r.Time, Data: r.Event}, true)
			if asked != nil && !q.seen[asked.ToolCallID] {
				asked.State = api.Open
				q.seen[asked.ToolCallID], q.order = true, append(q.order, asked)
			}
		case events.RecordAck:
			if id := query.EventID(r.Event); id != "" {
				q.acks[id] = true
			}
		}
	}
}

// notify reports the open questions that were not reported before.
func (q *questionWatch) notify() {
	for ; q.notified < len(q.order); q.notified++ {
		if asked := q.order[q.notified]; !q.acks[asked.ToolCallID] {
			q.on(asked)
		}
	}
}
