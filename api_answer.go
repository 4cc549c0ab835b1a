package oneturn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Verdict is what became of an answer. Its status is one of HTTP: 200 the answer counts.
type Verdict = events.AnswerResult

// A verdict that the request API gives when the workers have not decided in time: the answer is
// stored in the inbound stream, and will be decided on. To send it again is harmless.
const (
	StatusPublished  = 202
	VerdictPublished = events.AnswerCode("published")
)

// answerTime bounds the wait for the verdict in the request API.
const answerTime = apiTimeout - time.Second

// answer publishes the answer to a question, and returns what became of it.
func (a *api) answer(ctx context.Context, app string, body []byte) (any, error) {
	const want = `want {"chat_id":"…","tool_call_id":"…","run_id":"…"?,"user_id":"…"?,"value":…}`
	var q struct {
		AnswerRequest

		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" || q.ToolCallID == "" || q.Value == nil {
		return nil, fmt.Errorf("%w: %s", errBadRequest, want)
	}
	value, err := events.Decode(q.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: its value: %w", errBadRequest, err)
	}
	w, err := a.question(ctx, app, q.Chat, q.Run, q.ToolCallID)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return unknownQuestion(q.ToolCallID), nil
	}
	r := &events.ToolCallResponse{
		TurnID:   TurnID{App: w.App, Chat: w.Chat, Run: w.Run, Turn: w.Turn},
		Workflow: w.Workflow, ToolCallID: w.ToolCallID, UserID: q.UserID, Value: value,
	}
	return waiting(func(ctx context.Context) (any, error) { return a.deliver(ctx, w, r) }), nil
}

// deliver publishes the answer to a question and waits for its verdict, as long as a request may.
func (a *api) deliver(ctx context.Context, w *Wait, r *events.ToolCallResponse) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v, err := deliver(ctx, a.js, a.space, w.Subject, r)
	if errors.Is(err, ErrUndecided) {
		if w.State == WaitNotAsked {
			err = errNotAsked
		}
		return Verdict{Status: StatusPublished, Code: VerdictPublished, Message: err.Error(), ToolCallID: w.ToolCallID}, nil
	}
	return v, err
}

// ErrUndecided says that an answer is stored in the inbound stream, and that nobody has said in
// time what becomes of it. Some worker will decide; to send the answer again is harmless, and
// tells.
var ErrUndecided = errors.New("the answer is published, and not decided on yet: a worker that serves its workflow and pool decides on it")

// errNotAsked is the message of a published answer whose question does not exist yet.
var errNotAsked = errors.New("the answer is published, and the turn has not asked this question yet: it waits for the question, up to two minutes")

// unknownQuestion is the verdict on an answer whose question and turn are unknown.
func unknownQuestion(id string) Verdict {
	return events.NewAnswerResult(events.AnswerUnknown, id, "There is no such question in this chat, and no running turn that could ask it. "+
		"If the turn was published just now, send the answer again.")
}

var errAnswerSubject = errors.New("it is no subject for answers in this chat: take it from the question's event")

// deliver publishes an answer to the subject of its question and waits until ctx ends for what
// becomes of it.
func deliver(ctx context.Context, js jetstream.JetStream, space subjects.Space, subject string, r *events.ToolCallResponse) (*Verdict, error) {
	in, ok := space.ParseIn(subject)
	if !ok || in.Kind != events.KindToolCallResponse || in.App != subjects.Token(r.App) || in.Chat != subjects.Token(r.Chat) {
		return nil, fmt.Errorf("answer %.80q on %.200q: %w", r.ToolCallID, subject, errAnswerSubject)
	}
	body, err := events.EncodeAnswer(r, time.Now())
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: %w", r.ToolCallID, err)
	}
	verdict := space.NewAnswerReply(r.App)
	sub, err := js.Conn().SubscribeSync(verdict)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: %w", r.ToolCallID, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	m := &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderReply: {verdict}}, Data: body}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: publish to %s: %w", r.ToolCallID, subject, err)
	}
	reply, err := sub.NextMsgWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("answer %.80q: %w (message %d of %s)", r.ToolCallID, ErrUndecided, ack.Sequence, ack.Stream)
	case err != nil:
		return nil, fmt.Errorf("answer %.80q: wait for its verdict: %w", r.ToolCallID, err)
	}
	v, err := events.DecodeAnswerResult(reply.Data)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: its verdict: %w", r.ToolCallID, err)
	}
	return v, nil
}
