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
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// Answer is a person's answer to a question, for [Client.Answer].
type Answer struct {
	App        string // tenant, "default" if empty
	Chat       string
	ToolCallID string // of the question
	UserID     string // the user that answers; a question to a user accepts no other user's answer
	Value      any    // the answer: anything that encoding/json writes

	// Workflow of the question, and the subject that its event names, or by default the subject of the
	// client's pool. Without a workflow the question is looked up by the workers' request API.
	Workflow string
	Subject  string
	// Run is the run id of the turn, if it is known: without it the chat is searched for the question.
	Run string
}

// ErrUndecided means that an answer is stored in the inbound stream, and that no worker has decided on it in
// time. A worker will; sending the answer again is harmless and returns the decision.
var ErrUndecided = deliver.ErrUndecided

// Answer publishes the answer to a question, and waits for its result: until ctx ends, or
// ClientOptions.AnswerWait is over. Not every result is an acceptance, see [events.AnswerResult.OK]. After an
// [ErrUndecided] the answer is published, and a worker will decide on it. Sending the same answer again is
// harmless: the result is the same as the first time.
func (c *Client) Answer(ctx context.Context, a Answer) (events.AnswerResult, error) {
	fail := func(err error) (events.AnswerResult, error) {
		return events.AnswerResult{ToolCallID: a.ToolCallID}, fmt.Errorf("answer %.80q of chat %.80q: %w", a.ToolCallID, a.Chat, err)
	}
	value, err := tree(a.Value)
	if err != nil {
		return fail(fmt.Errorf("it has no JSON form: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.AnswerWait)
	defer cancel()
	app := tenant(TurnID{App: a.App})
	switch {
	case a.Subject != "" && a.Workflow != "":
	case a.Workflow != "":
		a.Subject = c.space.In(c.o.Pool, events.KindToolCallResponse, app, a.Workflow, a.Chat)
	default:
		asked, known, err := c.question(ctx, app, api.QuestionsRequest{Chat: a.Chat, Run: a.Run, ToolCallID: a.ToolCallID})
		if err != nil {
			return fail(err)
		}
		if !known {
			return deliver.Unknown(a.ToolCallID), nil
		}
		a.Subject, a.Workflow, a.Run = asked.Subject, asked.Workflow, asked.Run
	}
	v, err := deliver.Answer(ctx, c.js, c.space, a.Subject, &events.ToolCallResponse{
		TurnID: events.TurnID{App: app, Chat: a.Chat, Run: a.Run}, Workflow: a.Workflow, ToolCallID: a.ToolCallID, UserID: a.UserID, Value: value,
	})
	if err != nil {
		return events.AnswerResult{ToolCallID: a.ToolCallID}, err
	}
	return *v, nil
}

// How long, and how often at first, a question is looked for whose turn no worker has claimed yet.
const (
	unknownFor   = 3 * time.Second
	unknownPause = 100 * time.Millisecond
)

// Question looks up a question by its tool_call_id, in any state: [api.NotAsked] if its turn runs and has
// not asked it. If there is no such turn either, the lookup is repeated for 3 s, because a turn that was
// published just now may not be claimed yet. Then known is false.
func (c *Client) Question(ctx context.Context, app, chat, toolCallID string) (q api.Question, known bool, err error) {
	return c.question(ctx, app, api.QuestionsRequest{Chat: chat, ToolCallID: toolCallID})
}

func (c *Client) question(ctx context.Context, app string, r api.QuestionsRequest) (q api.Question, known bool, err error) {
	end := time.Now().Add(unknownFor)
	for pause := unknownPause; ; pause *= 2 {
		page, err := c.Questions(ctx, app, r)
		if err != nil {
			return api.Question{}, false, err
		}
		if len(page.Questions) > 0 {
			return page.Questions[0], true, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return api.Question{}, false, nil
		}
		select {
		case <-ctx.Done():
			return api.Question{}, false, context.Cause(ctx)
		case <-time.After(min(pause, left)):
		}
	}
}

// Questions lists the open questions of a chat, or of all chats of a tenant ("default" if app is empty): a
// page of 16 at most, which may be empty though there are more, see Questions.Next of package api. Workers
// answer the request.
func (c *Client) Questions(ctx context.Context, app string, r api.QuestionsRequest) (*api.Questions, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	app = tenant(TurnID{App: app})
	page, err := request[api.Questions](ctx, c, app, api.VerbQuestions, r)
	if !errors.Is(err, nats.ErrNoResponders) {
		return page, err
	}
	former, err := request[formerQuestions](ctx, c, app, api.VerbWaits, r) // workers of the release before
	if err != nil {
		return nil, err
	}
	return &api.Questions{Questions: former.Waits, Next: former.Next}, nil
}

// formerQuestions is the reply to [api.VerbWaits].
type formerQuestions struct {
	Waits []api.Question `json:"waits"`
	Next  uint64         `json:"next"`
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

// watchQuestions subscribes to the questions of a call.
func (c *Client) watchQuestions(key subjects.Key) (*questionWatch, error) {
	q := &questionWatch{on: c.o.OnQuestion}
	if q.on == nil {
		return q, nil
	}
	q.changed, q.seen, q.acks = make(chan struct{}, 1), map[string]bool{}, map[string]bool{}
	var err error
	q.sub, err = c.nc.Subscribe(c.space.EventOfTurn(key, events.RecordAsk)+".*", func(*nats.Msg) {
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
