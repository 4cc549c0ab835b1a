package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// A report of a message is made of the records under its key, and of the turns that it has made: the one of its text, and one for
// each correction that is stored. Records that cannot be read are reported with their error. Objects are left out without --payload.

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
	Unread   string          `json:"unread,omitempty"` // why no object was found, of an agent that has a model
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
	Bytes    int             `json:"bytes"`
	Blob     string          `json:"blob,omitempty"`
	Repairs  []string        `json:"repairs,omitempty"`
	Around   []string        `json:"around,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"` // with --payload
}

// triggerFact is a trigger that a text matches: it may set a variable, and has set it if the change is stored.
type triggerFact struct {
	Variable string          `json:"variable"`
	From     json.RawMessage `json:"from,omitempty"` // only if the variable has this value
	Value    json.RawMessage `json:"value"`
	Seq      uint64          `json:"seq,omitempty"` // of the change in the journal, 0 if there is none
}

// messageTurn is a turn that a message has made.
type messageTurn struct {
	Turn       string          `json:"turn"`
	Corrects   string          `json:"correction_of,omitempty"` // turn key of the turn whose output it corrects
	State      query.TurnState `json:"state"`
	Outcome    string          `json:"outcome,omitempty"` // of an ended one: ok, or the code, or error
	Tool       string          `json:"tool,omitempty"`
	TotalMS    *float64        `json:"total_ms"`              // claim to end, null while open
	OtherCause bool            `json:"other_cause,omitempty"` // its claim names another message, or none: it was published, too
	Key        string          `json:"key"`
}

// agentCallFact is a call of a model for a message.
type agentCallFact struct {
	Call     string          `json:"call"`           // c<n> for a correction, d<rule> for the condition of a handoff rule
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
		if state, err := s.contextState(ctx, l.App, l.Chat, nil); err == nil { // without the right to read it, it stays unknown
			if d := state.Of(l.token, l.Seq); d != nil {
				l.Refused = d.Refused
			}
		}
	}
	return l, nil
}

// newMessageReport reads the records under the key of a message, nil if it has no text.
func newMessageReport(key subjects.Key, records []idempotency.Record, payload bool) *messageReport {
	name := key.Public(events.RecordText)
	at := indexOf(records, name)
	if at < 0 {
		return nil
	}
	text := &records[at]
	l := &messageReport{
		Key: key.String(), token: key.Turn, App: shown(key.App), Chat: shown(key.Chat), ID: shown(key.Turn), Seq: text.Seq, Time: text.Time.UTC(),
		due: text.Meta.Outcome, digest: text.Meta.Digest, Records: []recordFact{},
	}
	if run, id, ok := subjects.ParseMessageToken(key.Turn); ok {
		l.Run, l.ID = run, id
	}
	for i := range records {
		r := &records[i]
		if r.Former(text.Seq) {
			continue
		}
		fact := newRecordFact(r, text.Time)
		k, _ := subjects.ParseKey(r.Key)
		switch {
		case r.Key == name:
			l.addText(r, &fact, payload)
		case k.Call != subjects.SingleCall:
			l.addCall(k.Call, r, &fact)
		case fact.Kind == events.RecordContextUpdate:
			l.addUpdate(r, &fact)
		case fact.Kind == events.RecordStructuredOutput:
			l.addOutput(r, &fact)
		case fact.Kind == events.RecordHandoff:
			l.addHandoff(r, &fact)
		}
		l.Damaged = l.Damaged || fact.Error != ""
		l.Records = append(l.Records, fact)
	}
	return l
}

func indexOf(records []idempotency.Record, key string) int {
	for i := range records {
		if records[i].Key == key {
			return i
		}
	}
	return -1
}

func (l *messageReport) addText(r *idempotency.Record, fact *recordFact, payload bool) {
	text, err := events.ReadText(r.Data)
	if err != nil {
		fact.Error = cmp.Or(fact.Error, "its event is unreadable: "+err.Error())
		return
	}
	l.event = text
	l.App, l.Chat, l.Run, l.ID = text.AppID, text.ChatID, text.RunID, text.MessageID
	l.Sequence, l.OutOfOrder, l.Workflow, l.Agent, l.User = text.TurnSequence, text.OutOfOrder, text.WorkflowName, text.Agent, text.UserID
	l.Hidden, l.Visual, l.Model, l.turn = text.UIHidden, text.IsVisual, text.Model, text.Turn
	var value json.RawMessage
	l.ContentBytes, l.ContentBlob, value = size(text.Content)
	if words, ok := text.Content.(string); ok {
		l.Content = words
	} else if payload {
		l.Content = value
	}
	if text.StructuredOutput != nil {
		l.Output = &objectFacts{Repairs: text.Repairs, Around: text.Around, Warnings: text.Warnings}
		l.Output.Bytes, l.Output.Blob, l.Output.Value = size(text.StructuredOutput)
		if !payload {
			l.Output.Value = nil
		}
	}
	if text.Unread != nil {
		l.Unread = text.Unread.Content
	}
	for _, c := range text.Changes {
		t := triggerFact{Variable: c.Variable, Value: jsonValue(c.Value)}
		if c.From != nil {
			t.From = jsonValue(c.From)
		}
		l.Triggers = append(l.Triggers, t)
	}
}

// addUpdate notes that a trigger has set its variable.
func (l *messageReport) addUpdate(r *idempotency.Record, fact *recordFact) {
	var e events.ContextUpdate
	if !read(r, fact, events.KindContextUpdate, &e) {
		return
	}
	value := jsonValue(e.Value)
	for i := range l.Triggers {
		if t := &l.Triggers[i]; t.Variable == e.Variable && string(t.Value) == string(value) && t.Seq == 0 {
			t.Seq = r.Seq
			return
		}
	}
	l.Triggers = append(l.Triggers, triggerFact{Variable: e.Variable, Value: value, Seq: r.Seq})
}

// addOutput adds the outcome of the output of an agent that has a model and no tool.
func (l *messageReport) addOutput(r *idempotency.Record, fact *recordFact) {
	var e events.StructuredOutput
	if !read(r, fact, events.KindStructuredOutput, &e) {
		return
	}
	if l.Failure = e.Code; e.Code != "" {
		l.Unread = e.Content
	}
}

func (l *messageReport) addHandoff(r *idempotency.Record, fact *recordFact) {
	e, err := events.ReadHandoff(r.Data)
	if err != nil {
		fact.Error = cmp.Or(fact.Error, "its event is unreadable: "+err.Error())
		return
	}
	l.Handoff = &handoffFact{
		Seq: r.Seq, Time: r.Time.UTC(), To: e.To, Rule: e.Rule, Reason: e.Reason, Code: e.Code, Message: e.Message, Via: e.Via, Fallback: e.Fallback, Ignored: e.Ignored,
	}
}

// addCall adds a record of a call of a model.
func (l *messageReport) addCall(call string, r *idempotency.Record, fact *recordFact) {
	at := -1
	for i := range l.Calls {
		if l.Calls[i].Call == call {
			at = i
		}
	}
	if at < 0 {
		at = len(l.Calls)
		l.Calls = append(l.Calls, agentCallFact{Call: call})
	}
	c := &l.Calls[at]
	if digits, ok := strings.CutPrefix(call, "d"); ok {
		if rule, err := strconv.Atoi(digits); err == nil {
			c.Rule = &rule
		}
	}
	switch fact.Kind {
	case events.RecordCall:
		var e events.ToolCall
		if !read(r, fact, events.KindToolCall, &e) {
			return
		}
		if c.Tool = e.ToolName; c.Rule != nil {
			c.Asked = jsonValue(e.Payload.ToolArgs)
		}
	case events.RecordResponse:
		var e events.ToolResponse
		if !read(r, fact, events.KindToolResponse, &e) {
			return
		}
		c.Outcome, c.Attempts = newAnswerFacts(&e, nil, r, false).outcome(), e.Attempts
		if c.Rule != nil {
			c.Reply = jsonValue(e.Payload)
		}
	}
}

// readTurnsOf reads the turns that a message has made.
func (s *server) readTurnsOf(ctx context.Context, l *messageReport) error {
	if l.turn == "" {
		return nil
	}
	keys := []string{l.turn}
	for _, c := range l.Calls {
		if digits, ok := strings.CutPrefix(c.Call, "c"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				keys = append(keys, l.event.CorrectedTurn(n))
			}
		}
	}
	for _, turn := range keys {
		key := subjects.TurnKey(l.App, l.Chat, l.Run, turn)
		t, err := idempotency.LoadEnds(ctx, s.journal, key)
		if err == nil && t.Claim != nil && t.Response == nil { // whether it is parked is in other records
			t, err = idempotency.Load(ctx, s.journal, key)
		}
		switch {
		case err != nil && !errors.Is(err, idempotency.ErrNotFound):
			return err
		case err != nil || t.Claim == nil:
			continue
		}
		l.Turns = append(l.Turns, newMessageTurn(t, turn, l.token))
	}
	return nil
}

func newMessageTurn(t *idempotency.Turn, turn, message string) messageTurn {
	m := messageTurn{Turn: turn, State: query.StateOfTurn(t), Key: t.Key.String(), OtherCause: t.Claim.Meta.Message != message}
	if call, err := events.ReadCall(t.Claim.Data); err == nil {
		m.Tool, m.Corrects = call.ToolName, call.CorrectionOf
	}
	if t.Response == nil {
		return m
	}
	took := milliseconds(t.Response.Time.Sub(t.Claim.Time))
	m.TotalMS = &took
	if e, err := events.ReadResponse(t.Response.Data); err == nil {
		m.Outcome = newAnswerFacts(e, t.Claim, t.Response, false).outcome()
	} else {
		m.Outcome = string(events.CodeStateCorrupt)
	}
	return m
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
