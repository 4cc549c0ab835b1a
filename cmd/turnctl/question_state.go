package main

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// States of a question.
const (
	askOpen       = "open"
	askDecided    = "decided" // by an answer whose record tells no more
	askClosed     = "closed"  // the turn has ended with it open
	askUnreadable = "unreadable"
	outcomeParked = "parked"
)

// question is what the journal tells about one question, but for the answer.
type question struct {
	Seq         uint64    `json:"seq"`
	ToolCallID  string    `json:"tool_call_id"`
	App         string    `json:"app_id"`
	Chat        string    `json:"chat_id"`
	Run         string    `json:"run_id,omitempty"`
	Turn        string    `json:"turn"`
	Workflow    string    `json:"workflow,omitempty"`
	Agent       string    `json:"agent,omitempty"`
	Tool        string    `json:"tool,omitempty"`
	Interaction string    `json:"interaction,omitempty"` // ui_tool, input_request
	Component   string    `json:"component,omitempty"`
	Display     string    `json:"display,omitempty"`
	User        string    `json:"user_id,omitempty"` // who alone may answer
	Secret      bool      `json:"secret,omitempty"`
	State       string    `json:"state"` // open, answered, expired, cancelled, decided, closed, unreadable
	AskedAt     time.Time `json:"asked_at"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	DecidedAt   time.Time `json:"decided_at,omitzero"`
	DecidedBy   string    `json:"decided_by,omitempty"`  // user that answered
	TakenEpoch  int       `json:"taken_epoch,omitempty"` // of the run that was handed the answer last
	Subject     string    `json:"answer_subject,omitempty"`
	ShownBytes  int       `json:"shown_bytes"`          // of what is shown
	ShownBlob   string    `json:"shown_blob,omitempty"` // object that holds it, when it is large
	Key         string    `json:"key"`                  // of the turn, for turnctl show --key
	Error       string    `json:"error,omitempty"`      // what is wrong with the record
	Shown       any       `json:"shown,omitempty"`      // with --payload
	Schema      any       `json:"schema,omitempty"`     // with --payload

	id  string // token of the question in its turn
	ask string // its id in its turn, "" if it is not known
}

// newQuestion reads the record of a question.
func newQuestion(r *idempotency.Record, fact *recordFact, payload bool) question {
	key, _ := subjects.ParseKey(r.Key)
	q := question{
		Seq: r.Seq, AskedAt: r.Time.UTC(), State: askOpen, Key: key.String(), id: key.ID,
		App: shown(key.App), Chat: shown(key.Chat), Turn: shown(key.Turn), ToolCallID: shown(key.Turn) + "/" + shown(key.ID),
	}
	var e events.ToolCall
	if !read(r, fact, events.KindToolCall, &e) {
		q.State, q.Error = askUnreadable, fact.Error
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

// questions reads what a turn has asked, and what became of it, out of its records in order.
type questions []question

// find returns the question that an id means, nil if there is none.
func (l questions) find(id string) *question {
	for i := range l {
		if l[i].id == id {
			return &l[i]
		}
	}
	return nil
}

// note takes over what another record says about its question.
func (l questions) note(r *idempotency.Record, fact *recordFact) {
	q := l.find(fact.ID)
	if q == nil {
		return
	}
	switch fact.Kind {
	case events.RecordAck:
		var e events.ToolCallAck
		if read(r, fact, events.KindToolCallAck, &e) {
			q.DecidedBy = e.UserID
		}
		q.decide(r)
	case events.RecordAnswer:
		q.decide(r)
	case events.RecordTaken:
		q.TakenEpoch = r.Meta.Epoch
	}
}

// decide notes how a question was decided, by its answer or its ack.
func (q *question) decide(r *idempotency.Record) {
	if q.DecidedAt.IsZero() {
		q.DecidedAt = r.Time.UTC()
	}
	if q.State == askOpen || q.State == askDecided {
		q.State = cmp.Or(r.Meta.Verdict, askDecided)
	}
}

// end closes what a turn has left open.
func (l questions) end() {
	for i := range l {
		if l[i].State == askOpen {
			l[i].State = askClosed
		}
	}
}

// open counts the open questions.
func (l questions) open() int {
	n := 0
	for i := range l {
		if l[i].State == askOpen {
			n++
		}
	}
	return n
}
