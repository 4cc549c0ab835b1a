package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// A report of a message is made of the records under its key (message_records.go) and of the turns that it has made
// (message_turns.go). Records that cannot be read are reported with their error. Objects are left out without --payload.

// messageState is the state that the journal gives a message.
type messageState string

// The states of a message.
const (
	messageOpen     messageState = "open"     // something that follows from it is not stored yet
	messageComplete messageState = "complete" // everything is stored
)

// messageReport is a message of an agent or a user.
type messageReport struct {
	Key        string       `json:"key"`
	App        string       `json:"app_id"`
	Chat       string       `json:"chat_id"`
	Run        string       `json:"run_id,omitempty"`
	ID         string       `json:"message_id"`
	State      messageState `json:"state"` // open, complete
	Meaning    string       `json:"meaning"`
	Damaged    bool         `json:"damaged,omitempty"` // a record cannot be read
	Seq        uint64       `json:"seq"`               // of its text
	Time       time.Time    `json:"time"`
	Sequence   int64        `json:"turn_sequence,omitempty"`
	OutOfOrder bool         `json:"out_of_order,omitempty"` // a later message of the run was handled before, so it changed nothing
	Refused    string       `json:"refused,omitempty"`      // why its changes were left out
	Workflow   string       `json:"workflow,omitempty"`
	Agent      string       `json:"agent,omitempty"`
	User       string       `json:"user_id,omitempty"`
	Hidden     bool         `json:"ui_hidden"`
	Visual     bool         `json:"is_visual"` // the manifests let frontends display this agent

	Content      any    `json:"content"` // text, or null if it is in a blob or not a text and --payload is not set
	ContentBytes int    `json:"content_bytes"`
	ContentBlob  string `json:"content_blob,omitempty"` // object with it, if it is large

	Model    string          `json:"model,omitempty"` // of the agent
	Output   *objectFacts    `json:"structured_output,omitempty"`
	Warnings []string        `json:"warnings,omitempty"` // what looks wrong: unknown_agent, or about the object
	Unread   string          `json:"unread,omitempty"`   // why no object was found, of an agent that has a model
	Failure  events.Code     `json:"failure,omitempty"`
	Triggers []triggerFact   `json:"triggers,omitempty"` // that the text matches
	Turns    []messageTurn   `json:"turns,omitempty"`    // that it has made: the first, then the corrections
	Calls    []agentCallFact `json:"calls,omitempty"`    // of models, for corrections and conditions of handoffs
	Handoff  *handoffFact    `json:"handoff"`            // null if none is stored
	Records  []recordFact    `json:"records"`

	token  string       // of the message
	digest string       // of the manifests by which it was read
	due    string       // what follows from it
	turn   string       // key of the turn that it makes, "" if it makes none
	event  *events.Text // nil if it cannot be read
	blobs  string       // bucket of values that records only refer to
}

// objectFacts are details of the object that was found in a message.
type objectFacts struct {
	Bytes   int             `json:"bytes"`
	Blob    string          `json:"blob,omitempty"`
	Repairs []string        `json:"repairs,omitempty"`
	Around  []string        `json:"around,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"` // with --payload
}

// triggerFact is a trigger that a text matches: it may set a variable, and has set it if the change is stored.
type triggerFact struct {
	Variable string          `json:"variable"`
	From     json.RawMessage `json:"from,omitempty"` // only if the variable has this value
	Value    json.RawMessage `json:"value"`
	Seq      uint64          `json:"seq,omitempty"` // of the change in the journal, 0 if there is none
}

// agentCallFact is a call of a model for a message.
type agentCallFact struct {
	Call     string          `json:"call"`           // c<n> for a correction, d<rule>-<digest of the question> for the condition of a handoff rule
	Rule     *int            `json:"rule,omitempty"` // of a condition
	Tool     string          `json:"tool,omitempty"`
	Outcome  string          `json:"outcome,omitempty"` // "" while it has no response
	Attempts int             `json:"attempts,omitempty"`
	Asked    json.RawMessage `json:"asked,omitempty"` // of a condition: what the decider was asked
	Reply    json.RawMessage `json:"reply,omitempty"` // of a condition
}

// handoffFact is the speaker after a message.
type handoffFact struct {
	Seq      uint64               `json:"seq"`
	Time     time.Time            `json:"time"`
	To       *string              `json:"to"`
	Rule     *int                 `json:"rule"`
	Reason   string               `json:"reason"`
	Code     string               `json:"code,omitempty"`
	Message  string               `json:"message,omitempty"`
	Via      []events.Via         `json:"via,omitempty"`
	Fallback any                  `json:"fallback,omitempty"`
	Ignored  []events.IgnoredRule `json:"ignored,omitempty"`
}

// messageReport reads everything about a message, or returns errNoRecord.
func (s *server) messageReport(ctx context.Context, key subjects.Key, payload bool) (*messageReport, error) {
	records, err := s.journal.Scan(ctx, key.OfTurn(), nil)
	if err != nil {
		return nil, unprovisioned(err)
	}
	l := newMessageReport(key, records, payload)
	if l == nil {
		return nil, errNoRecord
	}
	l.blobs = s.space.BlobsBucket()
	if err := s.readTurnsOf(ctx, l); err != nil {
		return nil, err
	}
	l.decideState()
	unset := func(t triggerFact) bool { return t.Seq == 0 }
	if !l.OutOfOrder && l.State == messageComplete && slices.ContainsFunc(l.Triggers, unset) {
		if state, err := s.contextState(ctx, l.App, l.Chat, variables.Layers{}); err == nil { // without the right to read it, it stays unknown
			if d := state.Of(l.token, l.Seq); d != nil {
				l.Refused = d.Refused
			}
		}
	}
	return l, nil
}

// decideState decides whether everything that follows from a message is stored, and explains that in a sentence.
func (l *messageReport) decideState() {
	handoff := l.due == idempotency.DueHandoff || l.due == idempotency.DueTurnHandoff
	turn := l.due == idempotency.DueTurn || l.due == idempotency.DueTurnHandoff
	var last *messageTurn
	if len(l.Turns) > 0 {
		last = &l.Turns[len(l.Turns)-1]
	}
	l.State, l.Meaning = messageOpen, ""
	switch {
	case handoff && l.Handoff != nil, !handoff && !turn, !handoff && last != nil && last.State == query.Ended:
		l.State, l.Meaning = messageComplete, "everything that follows from it is stored"
	case last != nil && last.State != query.Ended:
		l.Meaning = "its turn " + id(last.Turn) + " is " + string(last.State)
		if handoff {
			l.Meaning += ", and its handoff follows when that has ended"
		}
	case turn && last == nil:
		l.Meaning = "its turn is not claimed yet: a worker has the message, or the next sweep resumes it"
	default:
		l.Meaning = "its handoff is not stored yet: a worker has the message, or the next sweep resumes it"
	}
	if l.Damaged {
		l.Meaning += "; a record is damaged, see below"
	}
}
