package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/events"
)

// AnswerRequest is a person's answer to a question: for [Client.Answer], and the body of a
// request with [VerbAnswer].
type AnswerRequest struct {
	App        string `json:"-"` // "default" if empty; requests name it in the subject
	Chat       string `json:"chat_id"`
	ToolCallID string `json:"tool_call_id"`      // of the question
	UserID     string `json:"user_id,omitempty"` // who answers; a question to a user takes it from nobody else
	Value      any    `json:"value"`             // the answer: anything that encoding/json writes

	// Where to: the workflow of the question, and the subject that its event names, or that of
	// the client's pool. Without a workflow the question is looked up by the workers' request API.
	Workflow string `json:"-"`
	Subject  string `json:"-"`
	// Run is the run id of the turn, if it is known: without it the chat is searched for the question.
	Run string `json:"run_id,omitempty"`
}

// Answer publishes the answer to a question, and waits for what becomes of it: until ctx ends, or
// ClientOptions.AnswerWait is over. Not every verdict is a yes, see [Verdict.OK]. After an
// [ErrUndecided] the answer is published, and a worker will decide on it. To send the same
// answer again is harmless: its verdict is that of the first time.
func (c *Client) Answer(ctx context.Context, q AnswerRequest) (Verdict, error) {
	fail := func(err error) (Verdict, error) {
		return Verdict{ToolCallID: q.ToolCallID}, fmt.Errorf("answer %.80q of chat %.80q: %w", q.ToolCallID, q.Chat, err)
	}
	value, err := tree(q.Value)
	if err != nil {
		return fail(fmt.Errorf("it has no JSON form: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.AnswerWait)
	defer cancel()
	app := tenant(TurnID{App: q.App})
	switch {
	case q.Subject != "" && q.Workflow != "":
	case q.Workflow != "":
		q.Subject = c.space.In(c.o.Pool, events.KindToolCallResponse, app, q.Workflow, q.Chat)
	default:
		w, known, err := c.question(ctx, WaitsRequest{App: app, Chat: q.Chat, Run: q.Run, ToolCallID: q.ToolCallID})
		if err != nil {
			return fail(err)
		}
		if !known {
			return unknownQuestion(q.ToolCallID), nil
		}
		q.Subject, q.Workflow, q.Run = w.Subject, w.Workflow, w.Run
	}
	v, err := deliver(ctx, c.js, c.space, q.Subject, &events.ToolCallResponse{
		TurnID: TurnID{App: app, Chat: q.Chat, Run: q.Run}, Workflow: q.Workflow, ToolCallID: q.ToolCallID, UserID: q.UserID, Value: value,
	})
	if err != nil {
		return Verdict{ToolCallID: q.ToolCallID}, err
	}
	return *v, nil
}

// How long, and how often at first, a question is looked for whose turn no worker has claimed yet.
const (
	unknownFor   = 3 * time.Second
	unknownPause = 100 * time.Millisecond
)

// Question looks up a question by its tool_call_id, in whatever state it is: [WaitNotAsked] if its
// turn runs and has not asked it. If there is no such turn either, it looks again for 3 s, because a
// turn that was published just now may not be claimed yet. Then known is false.
func (c *Client) Question(ctx context.Context, app, chat, toolCallID string) (w Wait, known bool, err error) {
	return c.question(ctx, WaitsRequest{App: app, Chat: chat, ToolCallID: toolCallID})
}

func (c *Client) question(ctx context.Context, q WaitsRequest) (w Wait, known bool, err error) {
	end := time.Now().Add(unknownFor)
	for pause := unknownPause; ; pause *= 2 {
		found, err := c.Waits(ctx, q)
		if err != nil {
			return Wait{}, false, err
		}
		if len(found.Waits) > 0 {
			return found.Waits[0], true, nil
		}
		left := time.Until(end)
		if left <= 0 {
			return Wait{}, false, nil
		}
		select {
		case <-ctx.Done():
			return Wait{}, false, context.Cause(ctx)
		case <-time.After(min(pause, left)):
		}
	}
}

// Waits lists the questions of a chat, or of all chats of a tenant, that wait for an answer: a
// page of 16 at most, which may be empty though there are more, see Waits.Next. Workers answer
// it.
func (c *Client) Waits(ctx context.Context, q WaitsRequest) (*Waits, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	return request[Waits](ctx, c, tenant(TurnID{App: q.App}), VerbWaits, q)
}

// request asks the request API for JSON.
func request[T any](ctx context.Context, c *Client, app, verb string, q any) (*T, error) {
	m, err := c.ask(ctx, app, verb, q)
	if err != nil {
		return nil, err
	}
	var answer T
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, fmt.Errorf("request API: %w", err)
	}
	return &answer, nil
}

// ask asks the request API.
func (c *Client) ask(ctx context.Context, app, verb string, q any) (*nats.Msg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	m, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: c.space.API(app, verb), Data: body})
	if errors.Is(err, context.DeadlineExceeded) { // the one who had it may have died
		err = fmt.Errorf("no worker has answered in time, ask again: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("request API: %w", err)
	}
	if text := m.Header.Get(micro.ErrorHeader); text != "" {
		return nil, fmt.Errorf("%w: %s", errAPI, text)
	}
	return m, nil
}
