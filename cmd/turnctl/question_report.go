package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// question is one question as recorded in the journal, without its answer.
type question struct {
	Seq         uint64            `json:"seq"`
	ToolCallID  string            `json:"tool_call_id"`
	App         string            `json:"app_id"`
	Chat        string            `json:"chat_id"`
	Run         string            `json:"run_id,omitempty"`
	Turn        string            `json:"turn"`
	Workflow    string            `json:"workflow,omitempty"`
	Agent       string            `json:"agent,omitempty"`
	Tool        string            `json:"tool,omitempty"`
	Interaction string            `json:"interaction,omitempty"` // ui_tool, input_request
	Component   string            `json:"component,omitempty"`
	Display     string            `json:"display,omitempty"`
	User        string            `json:"user_id,omitempty"` // the only user that may answer
	Secret      bool              `json:"secret,omitempty"`
	State       api.QuestionState `json:"state"` // unreadable also if the question itself is
	AskedAt     time.Time         `json:"asked_at"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"`
	DecidedAt   time.Time         `json:"decided_at,omitzero"`
	DecidedBy   string            `json:"decided_by,omitempty"`  // user that answered
	TakenEpoch  int               `json:"taken_epoch,omitempty"` // of the last run that received the answer
	Subject     string            `json:"answer_subject,omitempty"`
	ShownBytes  int               `json:"shown_bytes"`          // of the displayed content
	ShownBlob   string            `json:"shown_blob,omitempty"` // object with the content, if it is large
	Key         string            `json:"key"`                  // of the call that asked, for turnctl show --key
	Error       string            `json:"error,omitempty"`      // what is wrong with the record
	Shown       any               `json:"shown,omitempty"`      // with --payload
	Schema      any               `json:"schema,omitempty"`     // with --payload

	id  string // token of the question in its call
	ask string // its id in its call, "" if it is not known
}

// newQuestion reads the record of a question.
func newQuestion(r *idempotency.Record, fact *recordFact, payload bool) question {
	key, _ := subjects.ParseKey(r.Key)
	q := question{
		Seq: r.Seq, AskedAt: r.Time.UTC(), State: api.Open, Key: key.String(), id: key.ID,
		App: shown(key.App), Chat: shown(key.Chat), Turn: shown(key.Turn), ToolCallID: shown(key.Turn) + "/" + shown(key.ID),
	}
	var e events.ToolCall
	if !read(r, fact, events.KindToolCall, &e) {
		q.State, q.Error = api.Unreadable, fact.Error
		return q
	}
	q.ToolCallID, q.App, q.Chat = cmp.Or(e.ToolCallID, q.ToolCallID), cmp.Or(e.AppID, q.App), cmp.Or(e.ChatID, q.Chat)
	_, q.ask, _ = events.ParseQuestionID(q.ToolCallID)
	q.Run, q.Turn = e.RunID, cmp.Or(e.Turn, q.Turn)
	q.Workflow, q.Agent, q.Tool, q.Interaction, q.Display = e.WorkflowName, e.Agent, e.ToolName, e.InteractionType, e.Display
	q.User, q.Secret = e.UserID, e.Secret
	if e.ComponentType != nil {
		q.Component = *e.ComponentType
	}
	if e.Answer != nil {
		q.Subject, q.ExpiresAt = e.Answer.Subject, e.Answer.ExpiresAt
	}
	var value json.RawMessage
	q.ShownBytes, q.ShownBlob, value = size(e.Payload.Shown)
	if payload {
		q.Shown = value
		if e.Answer != nil {
			q.Schema = e.Answer.Schema
		}
	}
	return q
}

// questions are the questions of a turn with their outcomes, read from its records in order.
type questions []question

// find returns the question that a call has asked with an id, both as in a record of it; nil if there is none. Steps of a program
// may have questions with the same id.
func (l questions) find(call, id string) *question {
	for i := range l {
		if l[i].Key == call && l[i].id == id {
			return &l[i]
		}
	}
	return nil
}

// has reports whether one of the questions has an id.
func (l questions) has(toolCallID string) bool {
	return slices.ContainsFunc(l, func(q question) bool { return q.ToolCallID == toolCallID })
}

// decided notes the state of a readable question, and when it was decided.
func (q *question) decided(t *idempotency.Turn, asked *idempotency.QuestionState) {
	if q.Error == "" {
		q.State = query.StateOf(t, asked)
	}
	if by := cmp.Or(asked.Answer, asked.Ack); by != nil {
		q.DecidedAt = by.Time.UTC()
	}
	if asked.Taken != nil {
		q.TakenEpoch = asked.Taken.Meta.Epoch
	}
}

// acked notes the user that answered a question, from its ack.
func (l questions) acked(r *idempotency.Record, fact *recordFact) {
	var e events.ToolCallAck
	key, _ := subjects.ParseKey(r.Key)
	if q := l.find(key.String(), key.ID); q != nil && read(r, fact, events.KindToolCallAck, &e) {
		q.DecidedBy = e.UserID
	}
}

// open counts the open questions.
func (l questions) open() int {
	n := 0
	for i := range l {
		if l[i].State == api.Open {
			n++
		}
	}
	return n
}
