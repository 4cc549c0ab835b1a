package handlers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// messageKit is a kit whose workflow has agents that talk; its tools are functions by name.
type messageKit struct {
	*kit

	seq     uint64
	entered atomic.Int64
}

const messageWorkflow = `
agents: {Interviewer: , Architect: {model: Plan}, Critic: {model: Plan}}
models:
  Plan: {type: object, required: [title], properties: {title: {type: string}, agent_message: {type: string}}}
tools:
- {name: build, kind: go, agent: Architect, effect: unsafe}
- {name: ask, kind: go, auto: false, effect: replay}
context:
  interview_done:
    type: boolean
    default: false
    source: {type: state, triggers: [{type: agent_text, agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
`

// newMessageKit is a kit with a workflow of these files.
func newMessageKit(t *testing.T, files map[string]string, tool toolFunc) *messageKit {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "WF"), 0o750))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "WF", name), []byte(content), 0o600))
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)
	k := &messageKit{kit: newKit(t, nil)}
	k.Bindings = func() *bindings.Set { return set }
	k.Tool = func(*bindings.Binding) (tools.Invoker, error) {
		return toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			k.entered.Add(1)
			return tool(ctx, call)
		}), nil
	}
	return k
}

// writes returns a new message of an agent.
func (k *messageKit) writes(id, agent string, content any, change ...func(*events.AgentMessage)) *inbound.Message {
	k.t.Helper()
	k.seq++
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, ID: id, Workflow: "WF", Agent: agent, Content: content, User: agent == events.AgentUser,
	}
	for _, f := range change {
		f(e)
	}
	body, err := events.EncodeMessage(e, time.Now())
	require.NoError(k.t, err)
	return &inbound.Message{
		Subject: k.space.In("default", e.InboundKind(), "app", "WF", "chat"), Data: body, Stored: time.Now(),
		Lease: idempotency.Lease{Stream: "IN", Seq: k.seq, Delivery: 1}, Held: k.t.Context(), Fresh: func() bool { return true },
	}
}

// deliver has a new message of an agent handled, which has to be acknowledged.
func (k *messageKit) deliver(id, agent string, content any, change ...func(*events.AgentMessage)) *inbound.Message {
	k.t.Helper()
	m := k.writes(id, agent, content, change...)
	k.handled(m)
	return m
}

func (k *messageKit) handled(m *inbound.Message) {
	k.t.Helper()
	require.Equal(k.t, inbound.Ack, k.Handle(k.t.Context(), m).Do)
}

// again is the next delivery of a message.
func again(m *inbound.Message) *inbound.Message {
	next := *m
	next.Lease.Delivery++
	return &next
}

// of returns the data of a public record of a message, nil if it is not stored.
func (k *messageKit) of(id, kind string, token ...string) map[string]any {
	k.t.Helper()
	return k.event(subjects.MessageKey("app", "chat", "", id).Public(kind, token...))
}

// responseOf is the response of a turn, nil if it has none.
func (k *messageKit) responseOf(turn string) map[string]any {
	k.t.Helper()
	return k.event(subjects.TurnKey("app", "chat", "", turn).Public(events.KindToolResponse))
}

func (k *messageKit) event(key string) map[string]any {
	k.t.Helper()
	r, err := k.store.Last(k.t.Context(), key)
	if err != nil {
		require.ErrorIs(k.t, err, idempotency.ErrNotFound)
		return nil
	}
	m, err := events.Parse(r.Data)
	require.NoError(k.t, err)
	return m.Data
}

// kinds are the records of a message in the order in which they were stored.
func (k *messageKit) kinds(id string) (kinds []string) {
	k.t.Helper()
	key := subjects.MessageKey("app", "chat", "", id)
	records, err := k.store.Scan(k.t.Context(), key, nil)
	require.NoError(k.t, err)
	for _, r := range records {
		kinds = append(kinds, strings.TrimPrefix(r.Key, "e."+key.String()+"."))
	}
	return kinds
}

// variables are the context variables of the chat.
func (k *messageKit) variables() map[string]any {
	k.t.Helper()
	vars, err := k.Variables.Load(k.t.Context(), "app", "chat", variables.Layers{})
	require.NoError(k.t, err)
	return vars
}

// strictStore is a store that some records do not get into.
type strictStore struct {
	*storetest.Memory

	check func(r *idempotency.Record) error
}

func (s strictStore) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if err := s.check(&r); err != nil {
		return 0, err
	}
	return s.Memory.Create(ctx, r)
}

func (k *messageKit) checkRecords(check func(r *idempotency.Record) error) {
	k.Journal = idempotency.New(strictStore{k.store, check}, "w", idempotency.Options{})
}

// limitRecords has the store refuse larger records, as a server does.
func (k *messageKit) limitRecords(most int) {
	k.checkRecords(func(r *idempotency.Record) error {
		if len(r.Data) > most {
			return idempotency.ErrRefused
		}
		return nil
	})
}

// expireText lets the text of a message expire, as the server does with the oldest records; what follows from it stays.
func (k *messageKit) expireText(id string) {
	k.t.Helper()
	text, err := k.store.Last(k.t.Context(), subjects.MessageKey("app", "chat", "", id).Public(events.RecordText))
	require.NoError(k.t, err)
	k.store.Expire(text.Seq)
	require.Nil(k.t, k.of(id, "text"))
}

// diesBefore handles a message with a worker that dies before it stores a record of this kind.
func (k *messageKit) diesBefore(kind string, m *inbound.Message) {
	k.t.Helper()
	whole := k.Journal
	k.checkRecords(func(r *idempotency.Record) error {
		if strings.Contains(r.Key, "."+kind) {
			panic("the worker dies")
		}
		return nil
	})
	require.Equal(k.t, inbound.Leave, k.Handle(k.t.Context(), m).Do)
	k.Journal = whole
}

// deliverTurn has the event of a turn handled, which has to be acknowledged.
func (k *messageKit) deliverTurn(turn, agent string, data map[string]any) {
	k.t.Helper()
	k.seq++
	m := k.message(k.seq, 1)
	body, err := events.EncodeTurn(&events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: turn}, Workflow: "WF", Agent: agent, Model: "Plan", Data: data, AutoToolMode: true,
	}, m.Stored)
	require.NoError(k.t, err)
	m.Data = body
	k.handled(m)
}
