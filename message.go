package oneturn

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// MessageID is the identity of a message of an agent or a user.
type MessageID struct {
	App     string // tenant, "default" if empty
	Chat    string
	Run     string // run id, empty if the message has none
	Message string // unique in its chat and run: a message is handled once
}

// check reports an id that identifies no message, with the field to set.
func (id *MessageID) check() error {
	switch {
	case id.Chat == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the message has no chat: set MessageID.Chat"}
	case id.Message == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the message has no id: set MessageID.Message, unique in its chat"}
	default:
		return nil
	}
}

// Message is what an agent has written. The workers find the JSON in it, match the triggers of the workflow, and decide who speaks
// next. If the agent has an automatic tool, the JSON is the data of a turn.
type Message struct {
	MessageID
	Workflow string // of the chat, required
	Agent    string // that has written it, required
	// Content is the text as the model has written it, or an object or list if it is parsed already: any value that encoding/json
	// writes as one of these.
	Content any
	// FinishReason is why the model has stopped, as its API reports it: "stop", "length", … Without it a text that was cut off can
	// look like a complete one.
	FinishReason     string
	Turn             string         // key of the turn that the message may make; the id of the message if empty
	UserID           string         // the user that the message is for, may be empty
	TurnSequence     int64          // position in the chat, 0 if unknown
	ContextVariables map[string]any // snapshot of the context variables, nil for none
	Depth            int            // as of a [Turn]
}

// UserMessage is what a user has written: triggers and handoff rules know it as a message of the agent "user". Content is a text, or
// a value that encoding/json writes as an object or list.
type UserMessage struct {
	MessageID
	Workflow         string         // of the chat, required
	UserID           string         // that has written it, may be empty
	Content          any            // required
	TurnSequence     int64          // position in the chat, 0 if unknown
	ContextVariables map[string]any // snapshot of the context variables, nil for none
}

// message returns the message as a message of the agent user.
func (m *UserMessage) message() *Message {
	return &Message{
		MessageID: m.MessageID, Workflow: m.Workflow, Agent: events.AgentUser, Content: m.Content, UserID: m.UserID,
		TurnSequence: m.TurnSequence, ContextVariables: m.ContextVariables,
	}
}

// PublishMessage sends a message of an agent to the workers. Publishing it again is harmless. [Client.AwaitMessage] waits for what
// follows from it. A message that no worker could decode fails with [events.ErrBadArgs], and is not sent.
func (c *Client) PublishMessage(ctx context.Context, m *Message) (Receipt, error) {
	e, err := m.event(false)
	if err != nil {
		return Receipt{}, err
	}
	return c.publishMessage(ctx, e, max(m.Depth, depth(ctx)))
}

// PublishUserMessage sends a message of a user to the workers, like [Client.PublishMessage].
func (c *Client) PublishUserMessage(ctx context.Context, m *UserMessage) (Receipt, error) {
	e, err := m.message().event(true)
	if err != nil {
		return Receipt{}, err
	}
	return c.publishMessage(ctx, e, depth(ctx))
}

func (c *Client) publishMessage(ctx context.Context, e *events.AgentMessage, depth int) (Receipt, error) {
	body, err := events.EncodeMessage(e, time.Now())
	if err != nil {
		return Receipt{}, fmt.Errorf("publish message %.80q: %w", e.ID, err)
	}
	fingerprint, err := e.Fingerprint()
	if err != nil {
		return Receipt{}, fmt.Errorf("publish message %.80q: %w", e.ID, err)
	}
	id := e.TurnID
	id.Turn = e.ID
	return c.publish(ctx, message{
		kind: e.InboundKind(), id: TurnID(id), workflow: e.Workflow, body: body, msgID: c.inPool(events.MsgID(e.InboundKind(), id, fingerprint)), depth: depth,
	})
}

// event returns the message as it is published, or what is wrong with it.
func (m *Message) event(user bool) (*events.AgentMessage, error) {
	fail := func(err error) (*events.AgentMessage, error) {
		return nil, fmt.Errorf("publish message %.80q: %w", m.Message, err)
	}
	if err := m.check(); err != nil {
		return fail(err)
	}
	switch {
	case m.Workflow == "":
		return fail(&events.Error{Code: events.CodeBadArgs, Msg: "the message has no workflow: set Workflow"})
	case m.Agent == "":
		return fail(&events.Error{Code: events.CodeBadArgs, Msg: "the message has no agent: set Agent"})
	case m.Agent == events.AgentUser && !user:
		return fail(&events.Error{Code: events.CodeBadArgs, Msg: "the agent user stands for people: publish what they write with PublishUserMessage"})
	}
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: tenant(m.App), Chat: m.Chat, Run: m.Run, Turn: m.Turn}, ID: m.Message, User: user,
		Workflow: events.Name(m.Workflow), Agent: events.Name(m.Agent), FinishReason: m.FinishReason, UserID: m.UserID, TurnSequence: m.TurnSequence,
	}
	if e.Turn == "" {
		e.Turn = e.ID
	}
	var err error
	if e.Content, err = tree(m.Content); err != nil {
		return fail(fmt.Errorf("its content has no JSON form: %w", err))
	}
	if m.ContextVariables == nil {
		return e, nil
	}
	vars, err := tree(m.ContextVariables)
	if err != nil {
		return fail(fmt.Errorf("its context variables have no JSON form: %w", err))
	}
	e.ContextVariables, _ = vars.(map[string]any)
	return e, nil
}
