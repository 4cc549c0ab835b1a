// Package deliver publishes messages for workers: publish.go publishes one until it is acknowledged, deliver.go the answer to a question,
// and waits for its result. The client, the server of the request API and gateways share it.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/traceparent"
	"github.com/oneturn/oneturn/subjects"
)

// ErrUndecided means that an answer is stored in the inbound stream, and that no worker has decided on it in
// time. A worker will; sending the answer again is harmless and returns the decision.
var ErrUndecided = errors.New("the answer is published, and not decided on yet: a worker that serves its workflow and pool decides on it")

var errSubject = errors.New("not a subject for answers in this chat: take it from the question's event")

// Unknown is the result of an answer whose question and turn are unknown.
func Unknown(id string) events.AnswerResult {
	return events.NewAnswerResult(events.AnswerUnknown, id, "There is no such question in this chat, and no running turn that could ask it. "+
		"If the turn was published just now, send the answer again.")
}

// Answer publishes an answer to the subject of its question and waits for its result until ctx ends:
// then with [ErrUndecided].
func Answer(ctx context.Context, js jetstream.JetStream, space subjects.Space, subject string, r *events.ToolCallResponse) (*events.AnswerResult, error) {
	in, ok := space.ParseIn(subject)
	if !ok || in.Kind != events.KindToolCallResponse || in.App != subjects.Token(r.App) || in.Chat != subjects.Token(r.Chat) {
		return nil, fmt.Errorf("answer %.80q on %.200q: %w", r.ToolCallID, subject, errSubject)
	}
	body, err := events.EncodeAnswer(r, time.Now())
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: %w", r.ToolCallID, err)
	}
	result := space.NewAnswerReply(r.App)
	sub, err := js.Conn().SubscribeSync(result)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: %w", r.ToolCallID, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	m := &nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderReply: {result}}, Data: body}
	if trace := traceparent.From(ctx); trace != "" {
		m.Header[traceparent.Header] = []string{trace}
	}
	ack, err := Publish(ctx, js, m)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: publish to %s: %w", r.ToolCallID, subject, err)
	}
	reply, err := sub.NextMsgWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("answer %.80q: %w (message %d of %s)", r.ToolCallID, ErrUndecided, ack.Sequence, ack.Stream)
	case err != nil:
		return nil, fmt.Errorf("answer %.80q: wait for its result: %w", r.ToolCallID, err)
	}
	v, err := events.DecodeAnswerResult(reply.Data)
	if err != nil {
		return nil, fmt.Errorf("answer %.80q: its result: %w", r.ToolCallID, err)
	}
	return v, nil
}
